import { sql } from "../../hub/db/orm.ts";
import { sealNext } from "../../hub/db/queries/audit-chain.ts";
import { type AuditEntry, recordAudit, recordAudits } from "../../hub/db/queries/audit-logs.ts";
import { setNodeCordon } from "../../hub/db/queries/nodes.ts";
import type { NodeId } from "../../shared/ids.ts";
import { type Bench, percentile, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { seedFleet } from "./seed-fleet.ts";

const ROUNDS = 400;
const ENTRIES = 20_000;
/** The most entries that one statement inserts, because PostgreSQL takes at most 65,535 parameters. */
const AT_ONCE = 1_000;

const entryOf = (target: string): AuditEntry => ({
  actor: "bench",
  role: "operator",
  via: "token",
  address: "192.0.2.7",
  requestId: "bench",
  action: "cordonNode",
  target,
  reason: null,
  details: { body: { reason: "a fan is loud" } },
});

async function took(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** Measures what the audit costs a write, and how many entries a second the hub chains. */
export const measureAudit = (stateDir: string): Promise<Figure[]> =>
  withDatabase(stateDir, async (bench) => [...(await writesOf(bench)), await chainingOf(bench)]);

/** Each round makes one write with an audit entry and one without, in turn, so that both meet the same load of the machine. */
async function writesOf({ database: { db, inTx } }: Bench): Promise<Figure[]> {
  await seedFleet(db, 1);
  const [node] = (await db.execute<{ id: NodeId }>(sql`select id from nodes`)).rows;
  if (node === undefined) throw new Error("the seeded fleet has no node");
  const write = (isAudited: boolean) =>
    inTx(async (tx) => {
      await setNodeCordon(tx, node.id, { cordonReason: "a fan is loud", cordonOwner: "operator:bench" }, undefined);
      if (isAudited) await recordAudit(tx, entryOf(`node/${node.id}`));
    });
  const without: number[] = [];
  const audited: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    without.push(await took(() => write(false)));
    audited.push(await took(() => write(true)));
  }
  const figure = (what: string, times: readonly number[]): Figure => ({
    name: `a write of one node ${what}`,
    value: percentile(times, 0.5),
    unit: "ms",
    note: `p50 of ${ROUNDS} transactions; p99 ${percentile(times, 0.99).toFixed(2)} ms`,
  });
  return [figure("without its audit entry", without), figure("with its audit entry", audited)];
}

async function chainingOf({ database: { inTx } }: Bench): Promise<Figure> {
  for (let from = 0; from < ENTRIES; from += AT_ONCE)
    await inTx((tx) =>
      recordAudits(
        tx,
        Array.from({ length: AT_ONCE }, (_, n) => entryOf(`node/${from + n}`)),
      ),
    );
  const ms = await took(async () => {
    for (let from = await inTx((tx) => sealNext(tx, { lookBack: null })); from !== null; ) {
      const next = from;
      from = await inTx((tx) => sealNext(tx, next));
    }
  });
  return {
    name: "audit entries chained per second",
    value: ENTRIES / (ms / 1_000),
    unit: "entries/s",
    note: `${ENTRIES} entries in ${(ms / 1_000).toFixed(2)} s, beside the requests and not in them`,
  };
}
