import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { z } from "zod";
import { type ChainPoint, ChainVerifier, checkHead, SealedEntry, START } from "../../shared/audit-chain.ts";
import { COMMON_FLAGS } from "./arguments.ts";
import type { Operation } from "./description.ts";
import { Refused, UsageError } from "./errors.ts";
import { operationNamed } from "./operation.ts";
import { plain } from "./output/plain.ts";
import { call, DEADLINE_MS, targetOf } from "./request.ts";

export const AUDIT_VERIFY_HELP = `muster audit verify [--file FILE ...] [--head=SEQUENCE:SHA256 ...] [--compare]
Verify the hash chain over the audit entries: that no entry was changed, removed, reordered or cut off.
Without --file the hub verifies the chain in its database, also against the heads that it keeps in its state folder.
  --file FILE      verify an export (JSON lines, or syslog lines that end with the JSON) offline; repeat the flag for each file, the oldest first
  --head=HEAD      a head of the chain that you kept, as this command prints it; the chain must still contain it
  --compare        with --file: afterwards verify the hub's chain too, against the newest entry of the files
Exit status: 0 all is right, 1 a fault was found, 2 the command was not understood or a file cannot be read, 3 the hub could not be reached.
`;

const Part = z.looseObject({
  entries: z.number(),
  through: z.object({ sequence: z.number(), entry_sha256: z.string() }),
  complete: z.boolean(),
  unsealed: z.number().nullable(),
  kept_heads: z.array(z.looseObject({ sequence: z.number(), kept_in: z.string() })),
  fault_count: z.number(),
  faults: z.array(z.looseObject({ code: z.string(), sequence: z.number(), message: z.string() })),
});

interface Found {
  readonly lines: readonly string[];
  readonly faults: number;
}

const FLAGS = {
  ...COMMON_FLAGS,
  file: { type: "string", multiple: true },
  head: { type: "string", multiple: true },
  compare: { type: "boolean" },
} as const;

function flagsOf(argv: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options: FLAGS, allowPositionals: true });
    if (positionals.join(" ") !== "audit verify")
      throw new Error("The command is `muster audit verify`, and takes only flags");
    return values;
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}. See: muster help audit`);
  }
}

function headOf(text: string): ChainPoint {
  const [, sequence, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (sequence === undefined || hash === undefined)
    throw new UsageError("--head takes SEQUENCE:SHA256, as the command prints it. See: muster help audit");
  return { sequence: Number(sequence), entry_sha256: hash };
}

/** Runs `muster audit verify`. */
export async function auditVerify(argv: readonly string[], operations: readonly Operation[]): Promise<void> {
  const values = flagsOf(argv);
  const heads = (values.head ?? []).map(headOf);
  const files = values.file ?? [];
  if (values.compare === true && files.length === 0) throw new UsageError("--compare needs --file.");
  let faults = 0;
  const tell = ({ lines, faults: found }: Found): void => {
    faults += found;
    process.stdout.write(`${plain(lines.join("\n"))}\n`);
  };
  let online = heads;
  if (files.length > 0) {
    const { found, last } = await verifyFiles(files, heads);
    tell(found);
    online = [...heads, ...(last === null ? [] : [last])];
  }
  if (files.length === 0 || values.compare === true) {
    const target = await targetOf(values, process.env);
    const operation = operationNamed("verifyAuditLogs", operations);
    const ask = async (query: Readonly<Record<string, string>>) => {
      const invocation = { path: operation.path, query: new URLSearchParams(query), body: null };
      const response = await call(target, { method: operation.method, invocation, deadlineMs: DEADLINE_MS });
      return Part.parse(await response.json());
    };
    tell(await verifyHub(ask, online));
  }
  if (faults > 0) throw new Refused("Not verified. Compare the entries with an export or a backup from before.");
  process.stdout.write("Verified.\n");
}

type Ask = (query: Readonly<Record<string, string>>) => Promise<z.output<typeof Part>>;

/** The hub verifies one part of the audit chain for each request, because the chain of a large fleet has millions of entries. */
async function verifyHub(ask: Ask, heads: readonly ChainPoint[]): Promise<Found> {
  const faults = new Map<string, string>();
  let entries = 0;
  const follow = async (extra: Readonly<Record<string, string>>): Promise<z.output<typeof Part>> => {
    for (let after = 0; ; ) {
      const part = await ask({ after: String(after), ...extra });
      for (const { code, message, sequence } of part.faults) faults.set(`${code} ${sequence}`, `${code}: ${message}`);
      entries += part.entries;
      if (part.complete) return part;
      after = part.through.sequence;
    }
  };
  const end = await follow({});
  const total = entries;
  for (const { sequence, entry_sha256: hash } of heads) {
    // To learn whether the audit chain still has an earlier newest entry (a head), the command asks for the verification of the part that contains
    // this entry.
    const part = await ask({
      after: String(Math.max(0, Math.min(sequence, end.through.sequence) - 1)),
      head: `${sequence}:${hash}`,
    });
    for (const { code, message, sequence: at } of part.faults) faults.set(`${code} ${at}`, `${code}: ${message}`);
  }
  const kept = end.kept_heads.map(({ sequence, kept_in: file }) => `${sequence} (${file})`).join(", ");
  return {
    faults: faults.size,
    lines: [
      `Hub: ${total} entries up to entry ${end.through.sequence}; ${end.unsealed ?? 0} wait for their seal.`,
      `Heads that the hub keeps outside its database: ${kept === "" ? "none" : kept}.`,
      `Head: ${end.through.sequence}:${end.through.entry_sha256}`,
      ...faults.values(),
    ],
  };
}

async function verifyFiles(
  files: readonly string[],
  heads: readonly ChainPoint[],
): Promise<{ found: Found; last: ChainPoint | null }> {
  let verifier: ChainVerifier | null = null;
  const unreadable: string[] = [];
  const seen = new Map<number, ChainPoint>();
  const wanted = new Set(heads.map(({ sequence }) => sequence));
  for (const file of files) {
    let number = 0;
    for await (const line of linesOf(file)) {
      number += 1;
      const entry = entryOf(line);
      if (entry === null) unreadable.push(`${file}, line ${number}: is not a whole audit entry.`);
      if (entry === null) continue;
      verifier ??= new ChainVerifier(entry.sequence === 1 ? START : null, sha256);
      verifier.add(entry);
      if (wanted.has(entry.sequence)) seen.set(entry.sequence, entry);
    }
  }
  if (verifier === null) throw new UsageError(`${files.join(", ")} contain no audit entry.`);
  const { entries, repeated, first, last, faults } = verifier.result;
  const end = last?.sequence ?? 0;
  const ofHeads = heads.flatMap((head) => checkHead(head, { entry: seen.get(head.sequence), end }));
  const all = [...faults, ...ofHeads].map(({ code, message }) => `${code}: ${message}`);
  const lines = [
    `Files: ${entries} entries, ${first} to ${end}${repeated === 0 ? "" : `, ${repeated} of them exported twice`}.`,
    // After a crash in the middle of a line, the hub writes the audit entry again, so an incomplete line of an exported file need not be a fault. If
    // a damaged line of an exported audit file hides a removed entry, the verification reports a missing entry.
    ...unreadable.map((one) => `Note: ${one}`),
    `Head: ${end}:${last?.entry_sha256}`,
    ...all,
  ];
  return { found: { lines, faults: all.length }, last };
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

async function* linesOf(file: string): AsyncGenerator<string> {
  try {
    for await (const line of createInterface({
      input: createReadStream(file, "utf8"),
      crlfDelay: Number.POSITIVE_INFINITY,
    }))
      if (line !== "") yield line;
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

/** A line of syslog has a header before the JSON of the entry. */
function entryOf(line: string): SealedEntry | null {
  try {
    const parsed = SealedEntry.safeParse(JSON.parse(line.slice(Math.max(0, line.indexOf("{")))));
    return parsed.success ? parsed.data : null;
  } catch {
    // The caller of `entryOf` reports a line of the audit file that is not JSON.
    return null;
  }
}
