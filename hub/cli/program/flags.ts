import { type Command, Option } from "commander";
import type { Field } from "../description.ts";
import { UsageError } from "../errors.ts";
import { namedBy, typesOf, verbFlag } from "../operation.ts";
import { FORMS } from "../output/form.ts";

export type Flags = Readonly<Record<string, unknown>>;

/** Adds the flags of every verb that sends requests to a hub. */
export const addGeneral = (command: Command): Command =>
  command
    .optionsGroup("General flags:")
    .option("--hub <url>", "the address of the hub (MUSTER_URL)")
    .option("--context <name>", "the context, which names a hub (MUSTER_CONTEXT; muster help context)")
    .option("--token-file <file>", "the file with the API token (MUSTER_TOKEN_FILE)")
    .option("--ca-file <file>", "the CA of the hub's https certificate, in PEM (MUSTER_CA_FILE)");

/** The flags of a verb that prints objects. */
export const addPrinting = (command: Command, forms: readonly string[] = FORMS): Command =>
  command
    .optionsGroup("Output:")
    .addOption(new Option("-o, --output <form>", "the form of the answer").choices(forms).default(forms[0]))
    .addOption(new Option("--color <when>", "colours of states").choices(["auto", "always", "never"]).default("auto"));

/** The flags that say which hub a command uses, by the names that an operator writes. */
export const namedFlags = (flags: Flags): Flags => ({
  hub: flags["hub"],
  context: flags["context"],
  "token-file": flags["tokenFile"],
  "ca-file": flags["caFile"],
});

export const addApproval = (command: Command): Command =>
  command.option("--approval <id>", "the approval of a second person, if the hub has asked for one");

export const approvalOf = (flags: Flags): Readonly<Record<string, string>> =>
  typeof flags["approval"] === "string" ? { "muster-approval": flags["approval"] } : {};

/** The value of a flag without which the command cannot work. */
export function needed(flags: Flags, name: string): string {
  const value = flags[name];
  if (typeof value !== "string") throw new UsageError(`--${name} is needed.`);
  return value;
}

/** A flag that may be repeated. */
const more = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

/** Adds a flag for a filter, an order or a page of a list. */
export function addFilter(command: Command, field: Field): void {
  const { schema } = field;
  const values = (schema.enum ?? []).map(String);
  const about = [
    schema.description ?? (namedBy(schema) === undefined ? "" : "a name or an id"),
    values.length > 0 && values.join() !== "true,false" ? `(${values.join(", ")})` : "",
  ];
  const text = about.filter((one) => one !== "").join(" ");
  if (values.join() === "true,false") {
    command.option(`--${verbFlag(field)}`, text);
    command.addOption(new Option(`--no-${verbFlag(field)}`).default(undefined).hideHelp());
    return;
  }
  const place = namedBy(schema) === undefined ? "value" : "name";
  command.addOption(new Option(`--${verbFlag(field)} <${place}>`, text).argParser(more));
}

/** The name under which the library commander stores the value of a flag. */
const keyOf = (field: Field): string => verbFlag(field).replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/**
 * Returns the query parameters of an API request, from the flags that filter a list. Several values of a filter are separated by commas, as the API
 * takes them.
 */
export function queryOf(fields: readonly Field[], flags: Flags): URLSearchParams {
  const query = new URLSearchParams();
  for (const field of fields) {
    const value = flags[keyOf(field)];
    if (Array.isArray(value)) query.set(field.name, value.join(","));
    else if (typeof value === "boolean") query.set(field.name, String(value));
  }
  return query;
}

/** Adds a flag for a field of a request's body. */
export function addBodyField(command: Command, field: Field): void {
  const { schema, required } = field;
  const about = [schema.description ?? "", required ? "(needed)" : ""].filter((one) => one !== "").join(" ");
  const types = typesOf(schema);
  if (types.includes("boolean")) command.option(`--${verbFlag(field)}`, about);
  else {
    const values = (schema.enum ?? []).map(String);
    const place =
      values.length > 0
        ? values.join("|")
        : types.includes("integer")
          ? "number"
          : namedBy(schema) === undefined
            ? "value"
            : "name";
    command.option(`--${verbFlag(field)} <${place}>`, about);
  }
}

/** Returns the body of an API request from the flags of the command; the hub checks the body. */
export function bodyOf(fields: readonly Field[], flags: Flags): Readonly<Record<string, unknown>> {
  const missing = fields.filter((field) => field.required && flags[keyOf(field)] === undefined);
  if (missing.length > 0) throw new UsageError(`Needed: ${missing.map((field) => `--${verbFlag(field)}`).join(", ")}.`);
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = flags[keyOf(field)];
      return value === undefined ? [] : [[field.name, fieldValue(field, value)]];
    }),
  );
}

function fieldValue(field: Field, value: unknown): unknown {
  const types = typesOf(field.schema);
  if (typeof value !== "string" || types.includes("string") || field.schema.enum !== undefined) return value;
  if (types.includes("integer") || types.includes("number")) return Number(value);
  try {
    return JSON.parse(value);
  } catch {
    throw new UsageError(`--${verbFlag(field)} takes JSON.`);
  }
}
