import { type ChainPoint, ChainVerifier, checkHead, START } from "../../shared/audit-chain.ts";
import { chainHead, countUnsealed, firstSeal, prunedThrough, readChain, sealAt } from "../db/queries/audit-chain.ts";
import { sha256Hex } from "../db/queries/audit-logs.ts";
import type { InTx, Tx } from "../db/tx.ts";

/** How many audit entries the hub reads and verifies at once, before it handles other work. */
const AT_ONCE = 1_000;

export interface VerifyRequest {
  /** The number of the audit entry after which the verification begins; 0 for the beginning of the chain. */
  readonly after: number;
  readonly limit: number;
  readonly heads: readonly ChainPoint[];
}

/** The hub reads each part of the audit chain in one snapshot of the database, so that retention and the sealer do not disturb the verification. */
const SNAPSHOT = { isolation: "repeatable read", readOnly: true } as const;

/** Verifies a part of the chain. If the verified part reaches the end of the chain, also counts the audit entries that have no seal yet. */
export const verifyPart = (inTx: InTx, request: VerifyRequest) =>
  inTx(async (tx) => {
    const part = await verifyIn(tx, request);
    return { ...part, unsealed: part.complete ? await countUnsealed(tx) : null };
  }, SNAPSHOT);

export interface CheckRequest extends Pick<VerifyRequest, "after" | "limit"> {
  /** The newest audit entry that any check of the chain has reached; null before the first check. */
  readonly head: ChainPoint | null;
}

/**
 * Verifies a part of the chain as `verifyPart` does, without the count of unsealed entries, which reads the whole table. `lost` says whether the
 * chain has lost the entry `head` or has another hash there, even if this entry is outside the verified part. If the chain ends before the entry
 * `after`, the verification begins at the first entry.
 */
export const checkPart = (inTx: InTx, { after, limit, head }: CheckRequest) =>
  inTx(async (tx) => {
    const end = (await chainHead(tx)).sequence;
    const lost = head === null ? [] : checkHead(head, { entry: await sealAt(tx, head.sequence), end });
    return { ...(await verifyIn(tx, { after: after > end ? 0 : after, limit, heads: [] })), lost };
  }, SNAPSHOT);

async function verifyIn(tx: Tx, { after, limit, heads }: VerifyRequest) {
  const first = await firstSeal(tx);
  const start = await startOf(tx, after, first);
  const verifier = new ChainVerifier(start, sha256Hex);
  if (start === null)
    verifier.report({
      code: "start_missing",
      sequence: after + 1,
      message: `The chain begins with entry ${first?.sequence ?? 0}, and no entry audit.prune says that retention removed the entries before it.`,
    });
  let through: ChainPoint = start ?? START;
  let read = 0;
  while (read < limit) {
    const rows = await readChain(tx, {
      after: Math.max(after, through.sequence),
      limit: Math.min(AT_ONCE, limit - read),
    });
    for (const { entry, ...point } of rows) {
      if (entry === null) verifier.removed(point);
      else verifier.add(entry);
      through = point;
    }
    read += rows.length;
    if (rows.length === 0) break;
  }
  const end = await chainHead(tx);
  const complete = through.sequence >= end.sequence;
  for (const head of heads)
    if (head.sequence > after && (head.sequence <= through.sequence || complete))
      for (const fault of checkHead(head, { entry: await sealAt(tx, head.sequence), end: end.sequence }))
        verifier.report(fault);
  const { faults, faultCount } = verifier.result;
  return { through, read, complete, faults, faultCount };
}

/** Returns the entry before the first entry to verify; null if the database does not say which entry that is. */
async function startOf(tx: Tx, after: number, first: ChainPoint | undefined): Promise<ChainPoint | null> {
  if (first === undefined) return START;
  if (after >= first.sequence) return (await sealAt(tx, after)) ?? null;
  if (first.sequence === 1) return START;
  const pruned = await prunedThrough(tx);
  return pruned?.sequence === first.sequence - 1 ? pruned : null;
}
