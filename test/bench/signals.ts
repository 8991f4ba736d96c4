import { randomUUID } from "node:crypto";
import { sql } from "../../hub/db/orm.ts";
import { readReadiness } from "../../hub/db/queries/node-readiness.ts";
import { receivedSignals } from "../../hub/db/schema/index.ts";
import { readinessOf } from "../../hub/node/readiness-verdict.ts";
import { readinessFactsOf } from "../../hub/node/scheduling-facts.ts";
import { takeSignals } from "../../hub/node/take-signals.ts";
import type { Signal } from "../../shared/api/signals.ts";
import { NodeId } from "../../shared/ids.ts";
import { type Bench, percentile, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { seedFleet } from "./seed-fleet.ts";

const NODES = 1_000;
const ROUNDS = 300;
const AT_ONCE = 4;
const BATCH = 100;
const SENDER = { name: "bench", sites: null };

const nodeOf = (n: number): NodeId => NodeId.parse(`bbbbbbbb-0000-4000-8000-${(n + 1).toString(16).padStart(12, "0")}`);
const signalAbout = (n: number): Signal => ({
  signal_id: randomUUID(),
  node: { id: nodeOf(n % NODES) },
  generation: 1,
  conditions: [
    { type: "os.booted", status: "True", reason: "Provisioned", message: "up", observed_at: new Date().toISOString() },
  ],
});

/** Runs the work `ROUNDS` times, `AT_ONCE` at a time, and returns the time of each in milliseconds and of all in seconds. */
async function timed(work: (round: number) => Promise<unknown>): Promise<{ took: number[]; seconds: number }> {
  const took: number[] = [];
  let next = 0;
  const begun = performance.now();
  const one = async (): Promise<void> => {
    for (let round = next++; round < ROUNDS; round = next++) {
      const from = performance.now();
      await work(round);
      took.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return { took, seconds: (performance.now() - begun) / 1000 };
}

/** Measures how fast the hub stores and applies signals, beside the bare insert of the same row, with a commit that waits for the disk. */
export const measureSignals = (stateDir: string): Promise<Figure[]> =>
  withDatabase(stateDir, async ({ database }: Bench) => {
    const { db, inTx } = database;
    await seedFleet(db, NODES);
    await db.execute(sql`vacuum analyze`);
    const bare = await timed((round) => inTx((tx) => tx.insert(receivedSignals).values(rowOf(signalAbout(round)))));
    const single = await timed((round) => inTx((tx) => takeSignals(tx, SENDER, [signalAbout(round)])));
    const batches = await timed((round) =>
      round % 10 > 0
        ? Promise.resolve()
        : inTx((tx) =>
            takeSignals(
              tx,
              SENDER,
              Array.from({ length: BATCH }, (_, n) => signalAbout(round * BATCH + n)),
            ),
          ),
    );
    const ready = await timed(async (round) => {
      const id = nodeOf(round);
      await inTx((tx) => takeSignals(tx, SENDER, [signalAbout(round)]));
      const [row] = await readReadiness(db, [id]);
      if (row === undefined) throw new Error(`the seeded fleet has no node ${id}`);
      readinessOf(readinessFactsOf(row), row.conditions);
    });
    const rate = ({ took, seconds }: typeof bare, of: string, each = 1): Figure => ({
      name: `signals, ${of}`,
      value: (took.length * each) / seconds,
      unit: "per second",
      note: `p50 ${percentile(took, 0.5).toFixed(1)} ms, p99 ${percentile(took, 0.99).toFixed(1)} ms; ${AT_ONCE} at once`,
    });
    const whole = {
      ...batches,
      took: batches.took
        .slice()
        .sort((a, b) => b - a)
        .slice(0, ROUNDS / 10),
    };
    return [
      rate(bare, "bare inserts of the same row"),
      rate(single, "taken one by one"),
      rate(whole, `taken in lists of ${BATCH}`, BATCH),
      {
        name: "from the last needed signal to the verdict about its node",
        value: percentile(ready.took, 0.99),
        unit: "ms",
        note: `p99 of ${ROUNDS}; p50 ${percentile(ready.took, 0.5).toFixed(1)} ms`,
      },
    ];
  });

const rowOf = ({ signal_id: signalId, node, generation, conditions }: Signal): typeof receivedSignals.$inferInsert => ({
  sender: "bare",
  signalId,
  contentSha256: "0".repeat(64),
  outcome: "applied",
  named: node,
  nodeId: node.id ?? null,
  generation: generation ?? null,
  conditions,
  decidedAt: new Date(),
});
