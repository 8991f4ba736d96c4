import { parseArgs } from "node:util";
import type { Field, Operation } from "./description.ts";
import { UsageError } from "./errors.ts";
import { flagOf, typesOf } from "./operation.ts";
import { typeText } from "./output.ts";

/** The parts of the API request that an operator's command line describes. */
export interface Asked {
  /** The values of the parameters in the API operation's path, by parameter name. */
  readonly words: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: unknown;
}

export interface Invocation extends Pick<Asked, "query" | "body"> {
  readonly path: string;
}

/**
 * The flags that every command of `muster` has. No field of the API may have the name of a flag that every command has. For example, `muster` could
 * take the value of a field `hub` for the hub's address, and send the operator's token to that address.
 */
export const COMMON_FLAGS = {
  hub: { type: "string" },
  context: { type: "string" },
  "token-file": { type: "string" },
  "ca-file": { type: "string" },
  output: { type: "string" },
  json: { type: "string" },
  all: { type: "boolean" },
  "if-match": { type: "string" },
  approval: { type: "string" },
  help: { type: "boolean" },
} as const;

type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

/** Splits a command line into flags and positional words. `readArguments` throws a `UsageError` for an unknown flag. */
export function readArguments(operation: Operation, argv: readonly string[]): { values: Values; words: string[] } {
  const fields = [...operation.query, ...(operation.body ?? [])];
  const flags = fields.map((field) => [flagOf(field), { type: "string", multiple: true }] as const);
  // The API of a hub of another version may have a field with the name of a flag that every command has.
  const taken = flags.map(([flag]) => flag).filter((flag) => flag in COMMON_FLAGS);
  try {
    const options = { ...Object.fromEntries(flags), ...COMMON_FLAGS };
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    const unclear = taken.find((flag) => flag in values);
    if (unclear !== undefined)
      throw new Error(`--${unclear} is a flag of every command, and a field of this one; give the field by --json`);
    return { values: values as Values, words: positionals };
  } catch (error) {
    // A `UsageError` shows only the first sentence of Node's message about a wrong flag, because Node's further advice does not fit the commands of
    // `muster`.
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split(/\. /, 1);
    throw new UsageError(`${reason.replace(/\.$/, "")}. See: muster help ${operation.command}`);
  }
}

/** The function `read` returns the content of the file that a flag's value `@file` names; the value `@-` means standard input. */
export function askedOf(
  operation: Operation,
  given: { readonly values: Values; readonly words: readonly string[] },
  read: (file: string) => string,
): Asked {
  const { values, words } = given;
  if (words.length !== operation.arguments.length) {
    const wanted = operation.arguments.map(({ name }) => `<${name}>`).join(" ");
    throw new UsageError(`${operation.command} takes ${wanted === "" ? "no arguments" : wanted}, not ${words.length}.`);
  }
  const query = new URLSearchParams();
  for (const field of operation.query) {
    for (const text of textsOf(values, field)) query.append(field.name, text);
  }
  return {
    words: Object.fromEntries(operation.arguments.map(({ name }, index) => [name, words[index] ?? ""])),
    query,
    body: operation.body === null ? null : bodyOf(operation, values, read),
  };
}

/** Returns the API request of a command line, with the parameter values filled into the request's path. */
export const invocationOf = (operation: Operation, { words, query, body }: Asked): Invocation => ({
  path: operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(words[name] ?? "")),
  query,
  body,
});

const textsOf = (values: Values, field: Field): string[] => {
  const value = values[flagOf(field)];
  return Array.isArray(value) ? value.map(String) : [];
};

function bodyOf(operation: Operation, values: Values, read: (file: string) => string): unknown {
  const whole = values["json"];
  const base = typeof whole === "string" ? json(contentOf(whole, read), "--json") : {};
  const fields = (operation.body ?? []).flatMap((field) => {
    const texts = textsOf(values, field);
    if (texts.length === 0) return [];
    return [[field.name, fieldValue(field, texts, read)]];
  });
  if (base === null || typeof base !== "object" || Array.isArray(base)) throw new UsageError("--json takes an object.");
  const body: Record<string, unknown> = { ...base, ...Object.fromEntries(fields) };
  const missing = (operation.body ?? []).filter((field) => field.required && !(field.name in body));
  if (missing.length > 0) {
    const flags = missing.map((field) => `--${flagOf(field)}`).join(", ");
    throw new UsageError(`${operation.command} needs ${flags}, or --json. See: muster help ${operation.command}`);
  }
  return body;
}

/**
 * Returns the value of an API field from the flags of the command line. An API field of type text takes a flag's value unchanged, and every other
 * field takes the value as JSON. A flag that a command line repeats makes a list of values.
 */
function fieldValue(field: Field, texts: readonly string[], read: (file: string) => string): unknown {
  const types = typesOf(field.schema);
  const one = (text: string): unknown => {
    const content = contentOf(text, read);
    if (types.length === 0 && field.schema.enum === undefined) return anyJson(content);
    if (types.includes("string") || field.schema.enum !== undefined || types.includes("array")) return content;
    return json(content, `--${flagOf(field)}`, typeText(field.schema));
  };
  const [only = ""] = texts;
  if (!types.includes("array")) {
    if (texts.length > 1) throw new UsageError(`--${flagOf(field)} takes one value.`);
    return one(only);
  }
  return texts.length === 1 && contentOf(only, read).trimStart().startsWith("[")
    ? json(contentOf(only, read), `--${flagOf(field)}`)
    : texts.map(one);
}

/**
 * In a flag's value, `@file` means the file's content without its last line end, and `@@x` means the text `@x`. `@file` lets an operator keep secrets
 * off the command line.
 */
function contentOf(text: string, read: (file: string) => string): string {
  if (text.startsWith("@@")) return text.slice(1);
  return text.startsWith("@") ? read(text.slice(1)).replace(/\r?\n$/, "") : text;
}

/** A field that takes any JSON value takes a text that is not valid JSON as a string. */
function anyJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function json(text: string, flag: string, wanted = "JSON"): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${flag} takes ${wanted}; the given value does not match.`);
  }
}
