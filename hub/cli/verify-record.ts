import { readFileSync, statSync } from "node:fs";
import { parseArgs } from "node:util";
import type { RecordFault, VerifiedRecord } from "../../shared/sanitization-verify.ts";
import { KeptHeads, verifyChain, verifyHeads, verifyRecord } from "../../shared/sanitization-verify.ts";
import { UsageError } from "./errors.ts";

import { plain } from "./output/plain.ts";
import { RECORD_CRYPTO } from "./record-crypto.ts";

/**
 * The largest size in bytes of a file that `verify-record` reads. An exported sanitization record with the longest possible chain of key statements
 * has less than half of `MOST_BYTES`.
 */
const MOST_BYTES = 2 * 1024 * 1024;
/** The file for `--heads`, which names the newest sanitization record of each node, has less than `MOST_HEADS_BYTES` for two hundred thousand nodes. */
const MOST_HEADS_BYTES = 64 * 1024 * 1024;
/** The exit status of `verify-record` for a record whose signatures hold, if the operator gave no order key of the hub. */
const NO_KEY_GIVEN = 4;

export const VERIFY_RECORD_HELP = `muster verify-record FILE [--chain FILE ...] [--order-key=KEY ...] [--heads FILE]
Verify an exported sanitization record offline: its form, the signatures of agent and hub, its verdict, and its place in the node's chain of records.
  --chain FILE     another record of the same node; repeat the flag for each record
  --order-key=KEY  an order key of the hub that you trust, as get-authority shows it, or @FILE with the key in PEM; the record's own key must be this
                   key or follow from it
  --heads FILE     the output of list-sanitization-heads --output json that you kept; the given records must contain the kept newest record of their
                   node, so give each record of the node from the one that interests you up to the newest
Exit status: 0 all is right, 1 a fault was found, 2 the command was not understood or a file cannot be read, 4 the signatures hold, but no --order-key
was given, so they may be those of another hub.
`;

interface Arguments {
  readonly files: readonly string[];
  readonly trusted: readonly string[];
  readonly heads: Parameters<typeof verifyHeads>[1];
}

function argumentsOf(argv: readonly string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: {
        chain: { type: "string", multiple: true },
        "order-key": { type: "string", multiple: true },
        heads: { type: "string" },
      },
      allowPositionals: true,
    });
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0)
      throw new UsageError("verify-record takes one FILE. See: muster help verify-record");
    return {
      files: [file, ...(values.chain ?? [])],
      trusted: (values["order-key"] ?? []).map(orderKeyOf),
      heads: values.heads === undefined ? [] : headsOf(values.heads),
    };
  } catch (error) {
    if (error instanceof UsageError || !(error instanceof Error)) throw error;
    throw new UsageError(`${error.message} See: muster help verify-record`);
  }
}

function headsOf(file: string): Arguments["heads"] {
  const parsed = KeptHeads.safeParse(jsonOf(file, MOST_HEADS_BYTES));
  if (parsed.success) return parsed.data.items;
  throw new UsageError(`${file} is not the whole output of list-sanitization-heads --output json.`);
}

function contentOf(file: string, most = MOST_BYTES): string {
  try {
    const { size } = statSync(file);
    if (size > most) throw new Error(`it has ${size} bytes, and at most ${most} are expected`);
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

function orderKeyOf(text: string): string {
  const given = text.startsWith("@") ? contentOf(text.slice(1)).trim() : text;
  const key = given.startsWith("-----BEGIN") ? RECORD_CRYPTO.orderKey(given) : given;
  if (key !== null && /^[A-Za-z0-9_-]{43}$/.test(key)) return key;
  throw new UsageError("--order-key takes an Ed25519 key: 43 characters of base64url, or @FILE with the key in PEM.");
}

function jsonOf(file: string, most = MOST_BYTES): unknown {
  const text = contentOf(file, most);
  try {
    return JSON.parse(text);
  } catch {
    // `verifyRecord` reports a file that is not JSON as a file without an exported record.
    return null;
  }
}

function linesOf(file: string, { record, faults, orderKey }: VerifiedRecord): string[] {
  const { node, allocation, agent } = record ?? {};
  const signed =
    agent == null ? "not signed by an agent" : `signed by the agent with certificate ${agent.certificate_serial}`;
  const about = [
    `${file}: record ${record?.sequence} of ${node?.hostname} (${node?.id}), tenant ${allocation?.tenant ?? "none"}: ${record?.verdict}`,
    `  ${signed}; order key of the hub: ${orderKey ?? "unreadable"}`,
  ];
  return [...(record === null ? [] : about), ...faults.map((one) => faultLine(`${file}: `, one))];
}

const faultLine = (about: string, { code, message }: RecordFault): string => `${about}${code}: ${message}`;

/** Verifies the exported sanitization records in the given files, prints the result, and returns the exit status. */
export function verifyRecordFiles(argv: readonly string[]): 0 | 1 | typeof NO_KEY_GIVEN {
  const { files, trusted, heads } = argumentsOf(argv);
  const verified = files.map((file) => ({ file, ...verifyRecord(jsonOf(file), trusted, RECORD_CRYPTO) }));
  const chain = [...verifyChain(verified), ...verifyHeads(verified, heads)];
  const faulty = chain.length > 0 || verified.some(({ faults }) => faults.length > 0);
  const end = faulty
    ? "Not verified. Do not rely on a record with a fault."
    : trusted.length === 0
      ? "The signatures hold. Give --order-key to learn whether this hub made them. See: muster help verify-record"
      : "Verified.";
  const lines = [...verified.flatMap((one) => linesOf(one.file, one)), ...chain.map((one) => faultLine("", one)), end];
  process.stdout.write(`${plain(lines.join("\n"))}\n`);
  return faulty ? 1 : trusted.length === 0 ? NO_KEY_GIVEN : 0;
}
