import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { UsageError } from "../errors.ts";
import { isKind, KINDS, type KindName } from "./kinds.ts";

/** One object of a file for `muster apply`, with the fields that the operator wants it to have. */
export interface Wanted {
  readonly kind: KindName;
  /** The name by which messages call the object, for example `profile/gold`. */
  readonly label: string;
  readonly site: string | null;
  readonly name: string | null;
  readonly fields: Readonly<Record<string, unknown>>;
}

const MOST_BYTES = 4 * 1024 * 1024;

/** Reads the objects of a file in YAML or JSON, and checks all of them before anything is sent. */
export function readDocuments(file: string): readonly Wanted[] {
  const documents = parseAllDocuments(textOf(file));
  const faults = documents.flatMap(({ errors }) => errors.map(({ message }) => `${file}: ${message}`));
  if (faults.length > 0) throw new UsageError(faults.join("\n"));
  const values = documents.map((one) => one.toJS() as unknown).filter((one) => one !== null && one !== undefined);
  const objects = values.flatMap((one) => (Array.isArray(one) ? one : [one]));
  if (objects.length === 0) throw new UsageError(`${file} has no object.`);
  return objects.map((one, index) => wantedOf(one, `${file}, object ${index + 1}`));
}

function textOf(file: string): string {
  try {
    const text = readFileSync(file === "-" ? 0 : file, "utf8");
    if (Buffer.byteLength(text) <= MOST_BYTES) return text;
  } catch (error) {
    throw new UsageError(`${file} could not be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  throw new UsageError(`${file} is larger than ${MOST_BYTES / 1024 / 1024} MB.`);
}

function wantedOf(value: unknown, where: string): Wanted {
  if (value === null || typeof value !== "object") throw new UsageError(`${where}: is no object with a kind.`);
  const { kind, site, ...rest } = value as Record<string, unknown>;
  if (typeof kind !== "string" || !isKind(kind))
    throw new UsageError(`${where}: kind must be ${Object.keys(KINDS).join(", ")}.`);
  const form = KINDS[kind];
  if (form.ofSite !== (typeof site === "string"))
    throw new UsageError(`${where}: a ${kind} ${form.ofSite ? "needs" : "has no"} site.`);
  const name = form.nameField === null ? null : rest[form.nameField];
  if (name !== null && typeof name !== "string") throw new UsageError(`${where}: a ${kind} needs ${form.nameField}.`);
  const known = form.fields();
  const unknown = Object.keys(rest).filter((field) => !known.includes(field));
  if (unknown.length > 0) throw new UsageError(`${where}: a ${kind} has no field ${unknown.join(", ")}.`);
  const siteName = typeof site === "string" ? site : null;
  return { kind, label: `${kind}/${name ?? siteName}`, site: siteName, name, fields: rest };
}
