import { writeFileSync } from "node:fs";
import { z } from "zod";
import { readArguments } from "./arguments.ts";
import type { Operation } from "./description.ts";
import { Refused, UsageError } from "./errors.ts";
import { operationNamed } from "./operation.ts";
import { plain } from "./output/plain.ts";
import { call, DEADLINE_MS, flagText, targetOf } from "./request.ts";

/**
 * The parts of the hub's diagnostics document from which `muster diagnostics` makes its summary. The output file of `muster diagnostics` contains the
 * whole document, even parts that `muster` does not know.
 */
const Section = z.looseObject({
  error: z.looseObject({ code: z.string(), detail: z.string() }).optional(),
  left_out: z.array(z.looseObject({ list: z.string(), shown: z.number(), of: z.number() })).optional(),
});
const Document = z.looseObject({ taken_at: z.string(), sections: z.record(z.string(), Section) });
type Document = z.output<typeof Document>;

export const DIAGNOSTICS_HELP = `muster diagnostics
Write one file for support: the state of the hub, its database and its fleet, and the last lines of its log, without secrets.
  --output FILE  by default muster-diagnostics-<time>.json; an existing file is not overwritten
`;

/** Writes the hub's diagnostics to a file, and reports what is missing in them. */
export async function writeDiagnostics(argv: readonly string[], operations: readonly Operation[]): Promise<void> {
  const operation = operationNamed("getDiagnostics", operations);
  const { values, words } = readArguments(operation, argv);
  if (words.length > 0) throw new UsageError("diagnostics takes no arguments. See: muster help diagnostics");
  const given = flagText(values, "output");
  if (given === "json" || given === "text")
    throw new UsageError("--output names a file here; the document is JSON in any case. See: muster help diagnostics");
  const { method, path } = operation;
  const invocation = { path, query: new URLSearchParams(), body: null };
  const response = await call(await targetOf(values, process.env), { method, invocation, deadlineMs: DEADLINE_MS });
  const text = await response.text();
  const document = Document.parse(JSON.parse(text));
  const file = given ?? `muster-diagnostics-${document.taken_at.replace(/[:.]/g, "-")}.json`;
  const content = `${JSON.stringify(JSON.parse(text), null, 1)}\n`;
  create(file, content);
  process.stdout.write(plain(reportOf(file, Buffer.byteLength(content), document)));
}

/** Creates a file that only its owner can read. `create` never overwrites a file and never follows a symbolic link. */
function create(file: string, content: string): void {
  try {
    writeFileSync(file, content, { mode: 0o600, flag: "wx" });
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    const reason = isThere ? "it already exists" : error instanceof Error ? error.message : String(error);
    throw new Refused(`${file} could not be written: ${reason}. Name another file with --output.`);
  }
}

function reportOf(file: string, bytes: number, { sections }: Document): string {
  const all = Object.entries(sections);
  const failed = all.flatMap(([name, { error }]) =>
    error === undefined ? [] : [`  ${name}: ${error.code}: ${error.detail}`],
  );
  const left = all.flatMap(([name, section]) =>
    (section.left_out ?? []).map(({ list, shown, of }) => `  ${name}: ${list}: ${of - shown} of ${of}`),
  );
  return [
    `${file}: ${bytes} bytes, ${all.length - failed.length} of ${all.length} sections, readable only by you.`,
    ...(failed.length === 0 ? [] : ["Could not be read:", ...failed]),
    ...(left.length === 0 ? [] : ["Left out, because there is too much of it:", ...left]),
    "It holds no secret. It does hold names and addresses of hosts, sites and this hub: read it before you pass it on.",
    "",
  ].join("\n");
}
