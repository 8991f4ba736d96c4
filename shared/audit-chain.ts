import { z } from "zod";
import { canonicalJson, Json } from "./json.ts";

/** The hashes of an audit entry also cover the name of the entry's format, so that no text of another format has the same hash. */
export const AUDIT_FORMAT = "muster-audit/1";
/** The hash before the first entry of an audit chain. */
export const GENESIS = "0".repeat(64);

/** How the actor of an audit entry proved who it is; `none` stands for the hub itself and for clients without a valid login. */
export const SIGN_IN_WAYS = ["token", "session", "oidc", "none"] as const;
export type SignInWay = (typeof SIGN_IN_WAYS)[number];
export const AUDIT_OUTCOMES = ["done", "refused"] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/** The part of an audit entry whose hash the hub writes in the transaction of the audited action. */
export interface AuditContent {
  readonly actor: string;
  /** How the actor signed in; null only in audit entries of older hubs, which did not record it. */
  readonly via: string | null;
  readonly role: string;
  readonly address: string | null;
  readonly request_id: string | null;
  readonly action: string;
  readonly target: string;
  readonly outcome: string;
  readonly error_code: string | null;
  readonly reason: string | null;
  readonly details: Json;
}

const Hash = z.string().regex(/^[0-9a-f]{64}$/);

/** One sealed audit entry, as the API lists it and as each line of an export contains it. */
export const SealedEntry = z.strictObject({
  format: z.literal(AUDIT_FORMAT),
  sequence: z.int().min(1),
  occurred_at: z.string().max(40),
  actor: z.string(),
  via: z.string().nullable(),
  role: z.string(),
  address: z.string().nullable(),
  request_id: z.string().nullable(),
  action: z.string(),
  target: z.string(),
  site_id: z.string().nullable(),
  outcome: z.string(),
  error_code: z.string().nullable(),
  reason: z.string().nullable(),
  details: Json,
  content_sha256: Hash,
  previous_sha256: Hash,
  entry_sha256: Hash,
});
export type SealedEntry = z.output<typeof SealedEntry>;

export type Sha256Hex = (text: string) => string;

const utf8 = new TextEncoder();
/**
 * In the text that is hashed, each field of an audit entry is preceded by its length, so that two different lists of fields never give the same text.
 * A null has no length.
 */
const prefixed = (fields: readonly (string | null)[]): string =>
  fields.map((field) => (field === null ? "-" : `${utf8.encode(field).length}:${field}`)).join("");

export const contentText = (entry: AuditContent): string =>
  prefixed([
    AUDIT_FORMAT,
    entry.actor,
    entry.via,
    entry.role,
    entry.address,
    entry.request_id,
    entry.action,
    entry.target,
    entry.outcome,
    entry.error_code,
    entry.reason,
    canonicalJson(entry.details),
  ]);

/** The fields that an audit entry gets when the hub puts it into the audit chain, such as its number and the hash of the entry before it. */
export type Placed = Pick<SealedEntry, "sequence" | "occurred_at" | "site_id" | "content_sha256" | "previous_sha256">;

export const entryText = (entry: Placed): string =>
  prefixed([
    `${AUDIT_FORMAT} entry`,
    String(entry.sequence),
    entry.occurred_at,
    entry.site_id,
    entry.content_sha256,
    entry.previous_sha256,
  ]);

export const AUDIT_FAULTS = [
  "content_changed",
  "entry_changed",
  "chain_broken",
  "entries_missing",
  "entry_removed",
  "out_of_order",
  "forked",
  "start_missing",
  "head_missing",
  "head_differs",
] as const;
export interface AuditFault {
  readonly code: (typeof AUDIT_FAULTS)[number];
  /** The first entry that the fault concerns. */
  readonly sequence: number;
  readonly message: string;
}

/**
 * The number and the hash of one entry of the audit chain. The number and hash of an entry that somebody keeps outside the hub, called a kept head,
 * show later whether entries up to this one were removed or rewritten.
 */
export interface ChainPoint {
  readonly sequence: number;
  readonly entry_sha256: string;
}
export const START: ChainPoint = { sequence: 0, entry_sha256: GENESIS };

const fault = (code: AuditFault["code"], sequence: number, message: string): AuditFault => ({
  code,
  sequence,
  message,
});
const span = (from: number, to: number): string => (from === to ? `entry ${from}` : `entries ${from} to ${to}`);

/** Checks an entry against its own hashes. One changed field gives one fault. */
function checkOwnHashes(entry: SealedEntry, sha256: Sha256Hex): AuditFault[] {
  if (sha256(contentText(entry)) !== entry.content_sha256)
    return [fault("content_changed", entry.sequence, `Entry ${entry.sequence} was changed after it was written.`)];
  if (sha256(entryText(entry)) !== entry.entry_sha256)
    return [
      fault(
        "entry_changed",
        entry.sequence,
        `The content, time, site or place of entry ${entry.sequence} differs from what the hub sealed.`,
      ),
    ];
  return [];
}

/**
 * Checks whether an audit entry follows `last`, the entry before it. `last` is null if the entry before is not known, for example because an older
 * part of the exported file was deleted.
 */
function checkPlace(last: ChainPoint | null, entry: Pick<SealedEntry, "sequence" | "previous_sha256">): AuditFault[] {
  if (last === null) return [];
  const { sequence } = entry;
  const expected = last.sequence + 1;
  if (sequence < expected)
    return [fault("out_of_order", sequence, `Entry ${sequence} stands after entry ${last.sequence}.`)];
  if (sequence > expected)
    return [
      fault(
        "entries_missing",
        expected,
        `The ${span(expected, sequence - 1)} before entry ${sequence} ${expected === sequence - 1 ? "is" : "are"} missing.`,
      ),
    ];
  if (entry.previous_sha256 === last.entry_sha256) return [];
  return [fault("chain_broken", sequence, `Entry ${sequence} does not continue entry ${last.sequence} as it now is.`)];
}

/**
 * Compares a kept head (number and hash of an audit entry that somebody kept elsewhere) with the entry of that number; `chain.entry` is undefined if
 * the chain no longer has the entry.
 */
export function checkHead(
  head: ChainPoint,
  chain: { readonly entry: ChainPoint | undefined; readonly end: number },
): AuditFault[] {
  if (head.sequence > chain.end)
    return [
      fault(
        "head_missing",
        chain.end + 1,
        `The ${span(chain.end + 1, head.sequence)} ${head.sequence === chain.end + 1 ? "is" : "are"} missing at the end: a kept head names entry ${head.sequence}.`,
      ),
    ];
  if (chain.entry === undefined || chain.entry.entry_sha256 === head.entry_sha256) return [];
  return [
    fault(
      "head_differs",
      head.sequence,
      `Entry ${head.sequence} is not the one of the kept head, so an entry up to ${head.sequence} was rewritten, with the chain after it.`,
    ),
  ];
}

/** How many of an export's last entries the verifier remembers, to recognize an entry that the hub exported a second time after a crash. */
const REMEMBERED = 10_000;
/** The largest number of faults that one verification of an audit chain lists. */
export const MOST_FAULTS = 1_000;

/** Verifies the entries of a part of the audit chain, one after the other. */
export class ChainVerifier {
  readonly faults: AuditFault[] = [];
  readonly #sha256: Sha256Hex;
  readonly #recent = new Map<number, string>();
  #faultCount = 0;
  #first: number | null = null;
  #last: ChainPoint | null;
  #entries = 0;
  #repeated = 0;

  /** `start` is the audit entry before the first entry to be verified, or null if nobody knows that entry. */
  constructor(start: ChainPoint | null, sha256: Sha256Hex) {
    this.#last = start;
    this.#sha256 = sha256;
  }

  add(entry: SealedEntry): void {
    this.#entries += 1;
    this.#first ??= entry.sequence;
    const known = this.#recent.get(entry.sequence);
    const own = checkOwnHashes(entry, this.#sha256);
    if (known !== undefined) {
      if (known === entry.entry_sha256 && own.length === 0) this.#repeated += 1;
      else
        this.report(
          fault("forked", entry.sequence, `There are two different entries with the number ${entry.sequence}.`),
        );
      return;
    }
    const place = checkPlace(this.#last, entry);
    // If an audit entry was changed, perhaps its number was changed too, so the verifier does not judge the place of such an entry in the chain.
    const isPlaced = place.every(({ code }) => code === "chain_broken");
    for (const one of isPlaced || own.length === 0 ? [...own, ...place] : own) this.report(one);
    if (!isPlaced && own.length > 0) return;
    this.#remember(entry);
    if (place.some(({ code }) => code === "out_of_order")) return;
    this.#last = { sequence: entry.sequence, entry_sha256: entry.entry_sha256 };
  }

  /** Adds a fault of the audit chain that the caller of the verifier has found. */
  report(found: AuditFault): void {
    this.#faultCount += 1;
    if (this.faults.length < MOST_FAULTS) this.faults.push(found);
  }

  /** Notes that the audit entry with the number `at.sequence` was removed, although the hub still has its hash. */
  removed(at: ChainPoint): void {
    this.#first ??= at.sequence;
    const before = this.#last;
    if (before !== null)
      for (const one of checkPlace(before, { sequence: at.sequence, previous_sha256: before.entry_sha256 }))
        this.report(one);
    this.report(fault("entry_removed", at.sequence, `Entry ${at.sequence} was removed; only its hash is left.`));
    this.#last = at;
  }

  #remember({ sequence, entry_sha256: hash }: SealedEntry): void {
    this.#recent.set(sequence, hash);
    if (this.#recent.size <= REMEMBERED) return;
    const [oldest] = this.#recent.keys();
    if (oldest !== undefined) this.#recent.delete(oldest);
  }

  get result() {
    return {
      entries: this.#entries,
      repeated: this.#repeated,
      first: this.#first,
      last: this.#last,
      faultCount: this.#faultCount,
      faults: this.faults,
    };
  }
}
