import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { waitKey } from "../../../hub/db/queries/workflow-wakes.ts";
import { maasMachines, maasSiteWatches, workflows } from "../../../hub/db/schema/index.ts";
import { MaasError } from "../../../hub/maas/port.ts";
import { emptyMemory } from "../../../hub/watcher/poll.ts";
import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { event, machine, Region } from "../../support/listed-region.ts";
import { pollOnce } from "../../support/one-poll.ts";

const HOUR = 3_600_000;

describe("the events feed of a site", () => {
  let test: TestDatabase;
  let siteId: SiteId;
  let region: Region;
  let memory: ReturnType<typeof emptyMemory>;
  beforeAll(async () => {
    test = await createTestDatabase();
  });
  afterAll(() => test.drop());
  beforeEach(() => {
    siteId = randomUUID() as SiteId;
    region = new Region();
    memory = emptyMemory();
  });

  const poll = async (sweepIntervalMs = HOUR) => {
    const polled = await pollOnce(test, { siteId, region, memory }, { sweepIntervalMs });
    if (polled === "lost") throw new Error("another hub has taken the site over");
    return { asked: [...region.asked], error: polled.error instanceof MaasError ? polled.error.code : polled.error };
  };
  /** Simulates that another hub takes over the watching of the site without the knowledge of the previous hub. */
  const anotherHub = () => {
    memory = emptyMemory();
  };
  const row = async () =>
    (await test.database.db.select().from(maasSiteWatches).where(eq(maasSiteWatches.siteId, siteId)))[0];
  const statuses = async () => {
    const rows = await test.database.db.select().from(maasMachines).where(eq(maasMachines.siteId, siteId));
    return Object.fromEntries(rows.map((one) => [one.systemId, one.status]));
  };
  const breaks = (code: MaasError["code"]) => {
    region.fault = new MaasError({ code, operation: "GET events/?op=query", message: "the feed is broken" });
  };

  it("that went back and then passed the cursor again is recognized by its last event, even by another hub", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    region.feed = [event(499, "aaa"), event(500, "aaa")];
    await poll();
    anotherHub();
    // A hub that takes over a site lists the ids of all machines, because it does not know when a hub listed them last.
    expect((await poll()).asked).toEqual(["events", "some aaa", "ids"]);
    // The simulated region goes back to a backup that is older than its event 499. Before the next poll, the restored region writes new events with
    // the ids 499, 500 and 501.
    region.machines = [machine("aaa"), machine("bbb", 6)];
    region.feed = [499, 500, 501].map((id) => ({ ...event(id, "aaa"), created: "later" }));
    anotherHub();
    expect((await poll()).asked).toEqual(["events", "list"]);
    expect(await statuses()).toEqual({ aaa: 4, bbb: 6 });
    anotherHub();
    expect((await poll()).asked).toEqual(["events", "some aaa", "ids"]);
    // The next poll of the watcher also reads all machines if the region's new events skip the id of the last known event.
    region.feed = [event(502, "aaa")];
    anotherHub();
    expect((await poll()).asked).toEqual(["events", "list"]);
  });

  it("may fail while sweeps and reads of awaited machines continue, and its error is recorded", async () => {
    region.machines = [machine("aaa"), machine("bbb")];
    breaks("bad_answer");
    expect(await poll()).toEqual({ asked: ["events", "list"], error: "bad_answer" });
    expect(await row()).toMatchObject({ eventCursor: null });
    expect(await poll()).toEqual({ asked: ["events"], error: "bad_answer" });
    await test.database.db.insert(workflows).values({
      id: randomUUID() as WorkflowId,
      kind: "test",
      status: "running",
      stage: "wait",
      input: {},
      waitOn: waitKey.machine(siteId, "bbb"),
    });
    for (const status of [9, 6]) {
      region.machines = [machine("aaa"), machine("bbb", status)];
      memory.waitedNotBefore = 0;
      expect(await poll()).toEqual({ asked: ["events", "some bbb"], error: "bad_answer" });
      expect(await statuses()).toEqual({ aaa: 4, bbb: status });
    }
    region.machines = [machine("aaa", 8), machine("bbb", 6)];
    expect(await poll(0)).toEqual({ asked: ["events", "list"], error: "bad_answer" });
    expect(await statuses()).toEqual({ aaa: 8, bbb: 6 });
    region.fault = null;
    region.feed = [event(7, "aaa")];
    expect(await poll()).toEqual({ asked: ["events", "list"], error: null });
    expect(await row()).toMatchObject({ eventCursor: 7 });
    const before = await row();
    breaks("timeout");
    memory.waitedNotBefore = Number.POSITIVE_INFINITY;
    expect(await poll()).toEqual({ asked: ["events"], error: "timeout" });
    // A poll that failed before it read any machine leaves the stored time of the site's last poll unchanged.
    expect(await row()).toMatchObject({ eventCursor: 7, lastPollAt: before?.lastPollAt });
    memory.waitedNotBefore = 0;
    expect(await poll()).toEqual({ asked: ["events", "some bbb"], error: "timeout" });
    expect((await row())?.lastPollAt?.getTime()).toBeGreaterThan(before?.lastPollAt?.getTime() ?? 0);
  });

  it("causes no further request when MAAS refuses the token or is unreachable", async () => {
    for (const code of ["unauthorized", "unreachable"] as const) {
      breaks(code);
      await expect(poll()).rejects.toMatchObject({ code });
      expect(region.asked).toEqual(["events"]);
    }
  });
});
