/** Reads the repository's README and docs, and finds the commands that a reader of the documents may type. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const REPOSITORY = new URL("../..", import.meta.url).pathname;
export const readOf = (file: string): string => readFileSync(join(REPOSITORY, file), "utf8");
const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(REPOSITORY, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
].map((file) => ({ file, text: readOf(file) }));

export interface Typed {
  readonly file: string;
  readonly command: string;
}

/** The beginnings of code blocks that show something other than commands. */
const SHOWN = [
  /^Starting a hub with its embedded database/,
  /[┌│└├]/,
  /^stateDiagram/,
  /^#cloud-config/,
  /^\[Service\]/,
  /^scrape_configs:/,
  /^MUSTER_PUBLIC_URL=/,
  /^defaults\n/,
  /^(CREATE ROLE|GRANT) /,
  /^\[\n {2}\{ "claim"/,
  /^- hosts: muster_adoption/,
  /^kind: sku/,
];
/** The beginnings of lines in code blocks that show the output of a command. */
const PRINTED = [
  /^hub-1\.json: /,
  /^Left out, because/,
  /^ {2}workflows: /,
  /^It holds no secret/,
  /^\{"signal_id"/,
  /^\{"node_id":/,
  /^\{"id":"\.\.\."/,
];

function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let block: { fence: boolean; indent: number; lines: string[] } | null = null;
  let previousWasBlank = true;
  const end = (): void => {
    if (block?.lines.some((line) => line.trim() !== "") === true) blocks.push(block.lines.join("\n").trimEnd());
    block = null;
  };
  for (const line of text.split("\n")) {
    const fence = /^( *)```/.exec(line);
    if (fence !== null) {
      const opens = block === null || !block.fence;
      end();
      if (opens) block = { fence: true, indent: fence[1]?.length ?? 0, lines: [] };
    } else if (block?.fence === true) block.lines.push(line.slice(block.indent));
    else if (/^ {4}\S/.test(line) && (block !== null || previousWasBlank)) {
      block ??= { fence: false, indent: 4, lines: [] };
      block.lines.push(line.slice(4));
    } else if (block !== null && /^ {4,}/.test(line)) block.lines.push(line.slice(4));
    else if (line.trim() !== "") end();
    previousWasBlank = line.trim() === "";
  }
  end();
  return blocks;
}

/**
 * True if a shell would wait for another line because the given text ends inside quotes or with a backslash. `goesOn` ignores quotes in shell
 * comments.
 */
function goesOn(text: string): boolean {
  let quote = "";
  let comment = false;
  for (const [at, letter] of [...text].entries()) {
    if (letter === "\n") comment = false;
    else if (comment) continue;
    else if (quote === "" && letter === "#" && /\s/.test(text[at - 1] ?? " ")) comment = true;
    else if (quote === letter) quote = "";
    else if (quote === "" && (letter === "'" || letter === '"')) quote = letter;
  }
  return quote !== "" || text.endsWith("\\");
}

function commandsOf(block: string): string[] {
  if (SHOWN.some((shown) => shown.test(block))) return [];
  const commands: string[] = [];
  let open = "";
  for (const line of block.split("\n")) {
    if (open === "" && PRINTED.some((printed) => printed.test(line))) continue;
    open = open === "" ? line : `${open}\n${line}`;
    if (goesOn(open)) continue;
    if (open.trim() !== "") commands.push(open);
    open = "";
  }
  return open === "" ? commands : [...commands, open];
}

/**
 * Matches the commands inside a sentence of the docs. The tests ignore a text with `<command>` in the docs, because the text is a pattern and no
 * command.
 */
const IN_PROSE = /`((?:npm run (?:-s )?muster -- |curl |jq |openssl |vault |T=)[^`]+)`/g;
const inProse = (text: string): string[] =>
  [...text.matchAll(IN_PROSE)].map(([, command = ""]) => command).filter((command) => !command.includes("<command>"));

export const COMMANDS: readonly Typed[] = DOCUMENTS.flatMap(({ file, text }) =>
  [...blocksOf(text).flatMap(commandsOf), ...inProse(text)].map((command) => ({ file, command })),
);

export const found = (pattern: RegExp): { readonly file: string; readonly match: RegExpExecArray }[] =>
  DOCUMENTS.flatMap(({ file, text }) => [...text.matchAll(pattern)].map((match) => ({ file, match })));
