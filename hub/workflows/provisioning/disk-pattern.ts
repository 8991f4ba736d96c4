import { createContext, Script } from "node:vm";

/**
 * The hub matches a pattern for at most `SEARCH_WITHIN_MS`, because the match of a pattern blocks the hub's whole process. An ordinary pattern
 * matches within microseconds, so `SEARCH_WITHIN_MS` is long enough even on a busy host.
 */
const SEARCH_WITHIN_MS = 1_000;
const CONTEXT = createContext({ texts: [] as readonly (readonly string[])[], expression: /x/ });
const SEARCH = new Script("texts.map((of) => of.map((text) => expression.test(text)).includes(true))");

/**
 * Tells for each list of texts whether one of its texts matches the pattern; null if the match took too long. If a pattern is no regular expression,
 * the hub searches for the pattern as literal text.
 */
export function holdPattern(
  texts: readonly (readonly string[])[],
  pattern: string,
  withinMs = SEARCH_WITHIN_MS,
): boolean[] | null {
  const expression = asExpression(pattern);
  if (expression === null)
    return texts.map((of) => of.some((text) => text.toLowerCase().includes(pattern.toLowerCase())));
  try {
    // Node.js can end a running match of a pattern only if the match runs as a script in a VM context.
    Object.assign(CONTEXT, { texts, expression });
    return [...SEARCH.runInContext(CONTEXT, { timeout: withinMs })];
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return null;
    throw error;
  }
}

function asExpression(pattern: string): RegExp | null {
  try {
    return new RegExp(pattern, "i");
  } catch {
    return null;
  }
}

/**
 * The length of the texts with which the hub tests a profile's pattern for disks. The texts that test a disk pattern are longer than models and paths
 * of disks, so a pattern that passes the test matches a disk's names in time.
 */
const WORST_LENGTH = 128;
/**
 * Parts of the texts that test a disk pattern: a pattern can match them by character classes such as `.`, `\w`, `\d` and `\s`, without containing
 * them literally.
 */
const OF_CLASSES = ["a", "0", " ", "_", "-", "a0", "a ", "0 "];
/**
 * Last characters of the texts that test a disk pattern: they should match no part of the pattern, so that the match must backtrack through all
 * alternatives.
 */
const WRONG_ENDS = ["\u0001", "!"];

/** Each test text for a disk pattern repeats a piece that the pattern may repeat, and ends with a character that does not match. */
export function worstTexts(pattern: string): string[] {
  const named = pattern.match(/[a-z0-9 _-]+/gi) ?? [];
  const pieces = new Set([...OF_CLASSES, ...named, ...named.flatMap((run) => [...run])]);
  return [...pieces].flatMap((piece) => {
    const repeated = piece
      .repeat(Math.ceil(WORST_LENGTH / piece.length))
      .slice(0, Math.max(WORST_LENGTH, piece.length));
    return WRONG_ENDS.map((end) => `${repeated}${end}`);
  });
}

/** Returns each repeated group of a disk pattern, such as `(a+)+`, so that the hub can time the match of the group alone. */
export function repeatedGroups(pattern: string): string[] {
  const found: string[] = [];
  const open: number[] = [];
  let inClass = false;
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern[at];
    if (character === "\\") at += 1;
    else if (inClass) inClass = character !== "]";
    else if (character === "[") inClass = true;
    else if (character === "(") open.push(at);
    else if (character === ")") {
      const from = open.pop();
      const [repetition] = /^([*+]|\{\d+(,\d*)?\})\??/.exec(pattern.slice(at + 1)) ?? [];
      if (from !== undefined && repetition !== undefined)
        found.push(`${pattern.slice(from, at + 1)}${repetition}\u0002`);
    }
  }
  return found;
}

/**
 * True if the pattern has a repetition within a repetition, such as `(a+)+$`, for which a match may take practically for ever. If `isEndless` misses
 * a pattern, the stage that uses the pattern ends the match after `SEARCH_WITHIN_MS`.
 */
export const isEndless = (pattern: string, withinMs = SEARCH_WITHIN_MS): boolean =>
  [pattern, ...repeatedGroups(pattern)].some((one) => holdPattern([worstTexts(one)], one, withinMs) === null);
