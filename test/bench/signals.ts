import { randomUUID } from "node:crypto";
import { sql } from "../../hub/db/orm.ts";
import { readReadiness } from "../../hub/db/queries/node-readiness.ts";
import { maasSiteProfiles, receivedSignals } from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";
import { profileColumns } from "../../hub/http/routes/profile-columns.ts";
import { readinessOf } from "../../hub/node/readiness-verdict.ts";
import { readinessFactsOf } from "../../hub/node/scheduling-facts.ts";
import { takeSignals } from "../../hub/node/take-signals.ts";
import { ProfileCreate } from "../../shared/api/profiles.ts";
import type { Signal } from "../../shared/api/signals.ts";
import { NodeId, SiteId } from "../../shared/ids.ts";
import { type Bench, percentile, withDatabase } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { seedFleet } from "./seed-fleet.ts";

const NODES = 1_000;
const ROUNDS = 300;
const AT_ONCE = 4;
const BATCH = 100;
const SENDER = { name: "bench", sites: null };

const nodeOf = (n: number): NodeId => NodeId.parse(`bbbbbbbb-0000-4000-8000-${(n + 1).toString(16).padStart(12, "0")}`);
const signalAbout = (n: number, type = "os.booted"): Signal => ({
  signal_id: randomUUID(),
  node: { id: nodeOf(n % NODES) },
  generation: 1,
  conditions: [{ type, status: "True", reason: "Provisioned", message: "up", observed_at: new Date().toISOString() }],
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
      await measureReady(database),
    ];
  });

/** The profile of every node asks for one condition, which the bench reports as the last one that is needed. */
async function askForFabric(db: Db): Promise<void> {
  const body = ProfileCreate.parse({ name: "fabric", readiness_policy: [{ all: [{ type: "fabric.ready" }] }] });
  const siteId = SiteId.parse("aaaaaaaa-0000-4000-8000-000000000000");
  const [profile] = await db
    .insert(maasSiteProfiles)
    .values({ ...profileColumns(body), siteId })
    .returning();
  await db.execute(sql`update node_onboardings set profile_id = ${profile?.id}`);
  await db.execute(sql`vacuum analyze`);
}

/** Measures the time from the last signal that a node needs until the hub calls the node ready. */
async function measureReady({ db, inTx }: Bench["database"]): Promise<Figure> {
  await askForFabric(db);
  const isReady = async (id: NodeId): Promise<boolean> => {
    const [row] = await readReadiness(db, [id]);
    if (row === undefined) throw new Error(`the seeded fleet has no node ${id}`);
    return readinessOf(readinessFactsOf(row), row.conditions).ready;
  };
  // The agent of every fiftieth seeded node says that its host is not healthy.
  const waiting = Array.from({ length: NODES }, (_, n) => n).filter((n) => (n + 1) % 50 !== 4);
  for (const n of waiting.slice(0, ROUNDS))
    if (await isReady(nodeOf(n))) throw new Error(`node ${nodeOf(n)} is ready before its last signal`);
  const { took } = await timed(async (round) => {
    const n = waiting[round] as number;
    await inTx((tx) => takeSignals(tx, SENDER, [signalAbout(n, "fabric.ready")]));
    if (!(await isReady(nodeOf(n)))) throw new Error(`node ${nodeOf(n)} is not ready after its last signal`);
  });
  return {
    name: "from the last needed signal until the node is ready",
    value: percentile(took, 0.99),
    unit: "ms",
    note: `p99 of ${ROUNDS}; p50 ${percentile(took, 0.5).toFixed(1)} ms; ${AT_ONCE} at once`,
  };
}

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
