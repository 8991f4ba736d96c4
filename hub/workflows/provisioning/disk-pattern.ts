import { createContext, Script } from "node:vm";

/** Nothing else of the hub runs meanwhile. An ordinary pattern takes microseconds; the rest is for a machine that is busy. */
const SEARCH_WITHIN_MS = 1_000;
const CONTEXT = createContext({ texts: [] as readonly (readonly string[])[], expression: /x/ });
const SEARCH = new Script("texts.map((of) => of.map((text) => expression.test(text)).includes(true))");

/** Which of the lists have a text that holds the pattern; one that is no regular expression is taken literally. Null: it took too long. */
export function holdPattern(texts: readonly (readonly string[])[], pattern: string): boolean[] | null {
  const expression = asExpression(pattern);
  if (expression === null)
    return texts.map((of) => of.some((text) => text.toLowerCase().includes(pattern.toLowerCase())));
  try {
    // Only a script of its own can be ended in the middle of a match.
    Object.assign(CONTEXT, { texts, expression });
    return [...SEARCH.runInContext(CONTEXT, { timeout: SEARCH_WITHIN_MS })];
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

/** Longer than the models and paths that disks have: what is done with these in time is done with those. */
const WORST_LENGTH = 128;
/** What classes such as `.`, `\\w`, `\\d` and `\\s` take, and the pattern need not name. */
const OF_CLASSES = ["a", "0", " ", "_", "-", "a0", "a ", "0 "];
/** No end that a pattern asks for, so that it tries every other way to read what stands before it. */
const WRONG_ENDS = ["\u0001", "!"];

/** Texts that make a pattern try all its ways, if it has many: what it repeats, again and again, and then something that it does not take. */
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

/** Each group that is repeated, with its repetition and an end that no disk has: so it is tried by itself, whatever must stand before it. */
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
 * Whether the pattern repeats within a repetition, e.g. `(a+)+$` or `(a|a)*b`, so that one text takes longer than the universe has. Found by trying it and its
 * repeated groups: what that misses ends in the stage that uses the pattern, by the same bound.
 */
export const isEndless = (pattern: string): boolean =>
  [pattern, ...repeatedGroups(pattern)].some((one) => holdPattern([worstTexts(one)], one) === null);
