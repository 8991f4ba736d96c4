import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { and, count, eq } from "../../../hub/db/orm.ts";
import { readObservedMachine } from "../../../hub/db/queries/maas-machines.ts";
import { releaseWatch } from "../../../hub/db/queries/maas-site-watches.ts";
import { waitKey } from "../../../hub/db/queries/workflow-wakes.ts";
import { type MaasSiteWatch, maasMachines, maasSiteWatches, workflows } from "../../../hub/db/schema/index.ts";
import { EVENT_OVERLAP, POLLS_PER_WAITED_READ } from "../../../hub/watcher/plan.ts";
import { emptyMemory, type PollResult } from "../../../hub/watcher/poll.ts";
import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { event, machine, Region } from "../../support/listed-region.ts";
import { HUB, holdSite, pollOnce } from "../../support/one-poll.ts";

const HOUR = 3_600_000;

describe("one poll at a site", () => {
  let database: TestDatabase;
  let siteId: SiteId;
  let region: Region;
  let memory: ReturnType<typeof emptyMemory>;

  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  beforeEach(() => {
    siteId = randomUUID() as SiteId;
    region = new Region();
    memory = emptyMemory();
  });
  afterEach(async () => {
    await database.database.db.delete(workflows);
  });

  const polled = (sweepIntervalMs = HOUR) => pollOnce(database, { siteId, region, memory }, { sweepIntervalMs });
  const poll = async (sweepIntervalMs = HOUR): Promise<readonly string[]> => {
    await polled(sweepIntervalMs);
    return [...region.asked];
  };
  const waitedReadIsDue = (): void => {
    memory.waitedNotBefore = 0;
    memory.pollsSinceWaited = POLLS_PER_WAITED_READ;
  };
  const watchRow = async (): Promise<MaasSiteWatch | undefined> => {
    const { db } = database.database;
    return (await db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, siteId)))[0];
  };
  const observed = (systemId: string) => readObservedMachine(database.database.db, siteId, systemId);
  const rows = async (absent: boolean): Promise<number> => {
    const here = and(eq(maasMachines.siteId, siteId), eq(maasMachines.absent, absent));
    return (await database.database.db.select({ n: count() }).from(maasMachines).where(here))[0]?.n ?? 0;
  };
  const waitOn = (...systemIds: readonly string[]) =>
    database.database.db.insert(workflows).values(
      systemIds.map((systemId) => ({
        id: randomUUID() as WorkflowId,
        kind: "test",
        status: "running" as const,
        stage: "wait",
        input: {},
        waitOn: waitKey.machine(siteId, systemId),
      })),
    );

  it("starts at the newest event with a sweep, then reads each changed machine once", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    region.feed = [event(500, "aaa")];
    expect(await poll()).toEqual(["events", "list"]);
    expect((await watchRow())?.eventCursor).toBe(500);
    // Each poll of the watcher also reads some events with ids below the event cursor. The second poll acts on events below the event cursor, because
    // the first poll did not act on these events.
    expect(await poll()).toEqual(["events", "some aaa"]);
    expect(await poll()).toEqual(["events"]);
    region.feed.push(event(501, "bbb"));
    region.machines = [machine("aaa"), machine("bbb", 9)];
    expect(await poll()).toEqual(["events", "some bbb"]);
    expect((await observed("bbb"))?.status).toBe(9);
  });

  it("sees an event that was committed late, below the cursor", async () => {
    region.machines = [machine("aaa")];
    region.feed = [event(500, "aaa")];
    await poll();
    await poll();
    region.feed.push(event(498, "aaa"));
    expect(await poll()).toEqual(["events", "some aaa"]);
  });

  it("acts on event ids that MAAS gives out a second time", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    region.feed = [event(499, "aaa"), event(500, "aaa")];
    await poll();
    await poll();
    region.feed = [event(498, "aaa")];
    expect(await poll()).toEqual(["events", "list"]);
    await poll();
    region.feed.push(event(499, "bbb"), event(500, "bbb"));
    expect(await poll()).toEqual(["events", "some bbb"]);
  });

  it("makes as many requests for 300 awaited machines as for one", async () => {
    region.machines = Array.from({ length: 300 }, (_, i) => machine(`m${i}`));
    await poll();
    await waitOn("m0");
    expect(await poll()).toEqual(["events", "some m0"]);
    await waitOn(...region.machines.slice(1).map(({ systemId }) => systemId));
    memory.waitedNotBefore = 0;
    expect(await poll()).toEqual(["events", "some 299"]);
    memory.waitedNotBefore = 0;
    expect(await poll()).toEqual(["events"]);
    waitedReadIsDue();
    expect(await poll()).toEqual(["events", "some 300"]);
  });

  it("reads all awaited machines in every twelfth poll", async () => {
    region.machines = [machine("aaa")];
    await poll();
    await waitOn("aaa");
    const read: number[] = [];
    for (let n = 0; n < 25; n += 1) {
      memory.waitedNotBefore = 0;
      if ((await poll()).includes("some aaa")) read.push(n);
    }
    expect(read).toHaveLength(3);
    expect([read[0], (read[2] ?? 0) - (read[1] ?? 0)]).toEqual([0, POLLS_PER_WAITED_READ]);
  });

  it("pauses the reads of awaited machines in a slow region, but reads changed machines", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    await waitOn("aaa");
    region.meanwhile = () => new Promise((done) => setTimeout(done, 5));
    await poll();
    expect(memory.waitedNotBefore).toBeGreaterThan(0);
    memory.waitedNotBefore = Number.POSITIVE_INFINITY;
    expect(await poll()).toEqual(["events"]);
    region.feed.push(event(1, "bbb"));
    expect(await poll()).toEqual(["events", "some bbb"]);
  });

  it("stores a poll with thousands of changed machines", async () => {
    region.machines = [machine("first")];
    region.feed = [event(1, "first")];
    await poll();
    region.machines = [machine("first"), ...Array.from({ length: 6_000 }, (_, i) => machine(`m${i}`))];
    region.feed = region.machines.map(({ systemId }, i) => event(i + 1, systemId));
    expect(await poll()).toContain("some 6001");
    expect((await watchRow())?.eventCursor).toBe(6_001);
    expect(await rows(false)).toBe(6_001);
    expect(memory.seen.size).toBe(EVENT_OVERLAP);
  });

  it("marks a machine absent after a direct read, and stops asking for the machine", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    await waitOn("aaa", "never-seen");
    region.machines = [machine("bbb")];
    memory.waitedNotBefore = 0;
    expect(await poll()).toEqual(["events", "some aaa never-seen", "whoami", "one aaa", "whoami"]);
    expect((await observed("aaa"))?.absent).toBe(true);
    waitedReadIsDue();
    expect(await poll()).toEqual(["events", "some aaa never-seen"]);
  });

  it("trusts a direct read of a machine that a list has left out", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    region.machines = [machine("bbb")];
    region.unlisted = [machine("aaa", 9)];
    expect(await poll(0)).toEqual(["events", "list", "whoami", "one aaa"]);
    expect(await observed("aaa")).toMatchObject({ absent: false, status: 9 });
  });

  it("returns the vanished machines that are not confirmed yet, after an event or a sweep", async () => {
    region.machines = Array.from({ length: 103 }, (_, i) => machine(`m${i}`));
    region.feed = [event(1, "m0")];
    await poll();
    region.feed = region.machines.map(({ systemId }, i) => event(i + 1, systemId));
    region.machines = [];
    const { unconfirmed } = (await polled()) as PollResult;
    expect(unconfirmed).toHaveLength(3);
    expect([await rows(true), await rows(false)]).toEqual([100, 3]);
    expect(((await polled(0)) as PollResult).unconfirmed).toEqual([]);
    expect(await rows(true)).toBe(103);
  });

  it("marks no machine absent if the token may have lost its rights", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    await poll();
    region.machines = [];
    region.isSuperuser = false;
    expect(await poll(0)).toEqual(["events", "list", "whoami"]);
    expect(await rows(true)).toBe(0);
    // The MAAS token loses its rights while the watcher reads machine after machine.
    region.isSuperuser = true;
    region.onReadOne = () => {
      region.isSuperuser = false;
    };
    expect(await poll(0)).toEqual(["events", "list", "whoami", "one aaa", "one bbb", "whoami"]);
    expect(await rows(true)).toBe(0);
  });

  it("confirms a vanished fleet over several polls of bounded size", async () => {
    region.machines = Array.from({ length: 150 }, (_, i) => machine(`m${i}`));
    await poll();
    region.machines = [];
    await database.database.db
      .update(maasSiteWatches)
      .set({ lastSweepAt: null })
      .where(eq(maasSiteWatches.siteId, siteId));
    expect((await poll()).filter((asked) => asked.startsWith("one"))).toHaveLength(100);
    expect((await watchRow())?.lastSweepAt).toBeNull();
    // The watcher's second poll needs no new list of machines, because the watcher keeps the list from the first poll.
    expect(await polled()).toMatchObject({ read: "some", unconfirmed: [] });
    expect(region.asked.filter((asked) => asked.startsWith("one"))).toHaveLength(50);
    expect((await watchRow())?.lastSweepAt).not.toBeNull();
    expect(await rows(true)).toBe(150);
  });

  it("stores nothing of a sweep or a read when another hub took the site meanwhile", async () => {
    region.machines = [machine("aaa")];
    region.feed = [event(500, "aaa")];
    const other = randomUUID();
    const takenOver = async (): Promise<void> => {
      await releaseWatch(database.database.db, siteId, HUB);
      await holdSite(database, siteId, other);
    };
    const givenBack = () => releaseWatch(database.database.db, siteId, other);
    region.meanwhile = takenOver;
    await poll();
    expect([await observed("aaa"), (await watchRow())?.eventCursor]).toEqual([null, null]);
    await givenBack();
    region.meanwhile = async () => undefined;
    await poll();
    region.meanwhile = takenOver;
    region.machines = [machine("aaa", 9)];
    await poll();
    expect((await observed("aaa"))?.status).toBe(4);
    await givenBack();
    region.meanwhile = async () => undefined;
    // The watcher must not remember the event as processed, because it dropped the event when it lost the site's lease.
    expect(await poll()).toEqual(["events", "some aaa"]);
    expect((await observed("aaa"))?.status).toBe(9);
  });
});
