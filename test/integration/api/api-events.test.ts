import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { recordDomainEvent } from "../../../hub/db/queries/domain-events.ts";
import type { Tx } from "../../../hub/db/tx.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";

const EVENTS = "/api/v1/admin/events";
type Event = { subject: string; cursor: string; specversion: string; type: string; data: unknown };

describe("domain events over the API", () => {
  let api: ApiHarness;
  beforeAll(async () => {
    api = await startApi();
  });
  afterEach(() => api.database.database.pool.query("truncate domain_events"));
  afterAll(() => api.close());

  const record = (tx: Tx, subject: string) =>
    recordDomainEvent(tx, {
      type: "node.status.changed",
      subject,
      data: { node_id: "n", hostname: "h", from: "offline", to: "active", owner: "heartbeat" },
    });
  const write = (subject: string) => api.database.database.inTx((tx) => record(tx, subject));
  const read = async (query = ""): Promise<Event[]> => (await api.ask("GET", `${EVENTS}${query}`)).body.items;
  const subjects = (events: readonly Event[]) => events.map((event) => event.subject);

  async function unfinished(subject: string) {
    const [written, allowed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const done = api.database.database.inTx(async (tx) => {
      await record(tx, subject);
      written.resolve();
      await allowed.promise;
    });
    await written.promise;
    return {
      commit: async () => {
        allowed.resolve();
        await done;
      },
      rollBack: async () => {
        allowed.reject(new Error("rolled back"));
        await expect(done).rejects.toThrow("rolled back");
      },
    };
  }

  it("are CloudEvents, oldest first, and a cursor continues after the last one read, even much later", async () => {
    for (const subject of ["nodes/1", "nodes/2", "nodes/3"]) await write(subject);
    const all = await read();
    expect(subjects(all)).toEqual(["nodes/1", "nodes/2", "nodes/3"]);
    expect(all[0]).toMatchObject({ specversion: "1.0", type: "node.status.changed", data: { to: "active" } });
    const first = await api.ask("GET", `${EVENTS}?limit=2`);
    expect(first.body.next_cursor).toBe(all[1]?.cursor);
    const end = all[2]?.cursor;
    expect(await read(`?cursor=${end}`)).toEqual([]);
    await write("nodes/4");
    expect(subjects(await read(`?cursor=${end}`))).toEqual(["nodes/4"]);
  });

  it("stop before an event whose transaction is still open, so no reader misses it", async () => {
    await write("nodes/1");
    const slow = await unfinished("nodes/2");
    await write("nodes/3");
    const seen = await read();
    expect(subjects(seen)).toEqual(["nodes/1"]);
    await slow.commit();
    expect(subjects(await read(`?cursor=${seen[0]?.cursor}`))).toEqual(["nodes/2", "nodes/3"]);
  });

  it("skip an event that was rolled back", async () => {
    const failing = await unfinished("nodes/1");
    await write("nodes/2");
    await failing.rollBack();
    expect(subjects(await read())).toEqual(["nodes/2"]);
  });

  it("reach a concurrent reader exactly once each when many are written at once", async () => {
    const names = Array.from({ length: 60 }, (_, index) => `nodes/${index}`);
    let writing = true;
    const writers = Promise.all(names.map(write)).finally(() => {
      writing = false;
    });
    const seen: Event[] = [];
    for (let last = false; !last; ) {
      last = !writing;
      const at = seen.at(-1)?.cursor;
      seen.push(...(await read(`?limit=200${at === undefined ? "" : `&cursor=${at}`}`)));
    }
    await writers;
    expect(subjects(seen).sort()).toEqual([...names].sort());
  });
});
