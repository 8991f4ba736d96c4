import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordDomainEvent } from "../../../hub/db/queries/domain-events.ts";
import { lastSettled } from "../../../hub/db/queries/domain-events-list.ts";
import { EVERYWHERE } from "../../../hub/db/queries/reach.ts";
import { removeOutdated } from "../../../hub/db/queries/retention.ts";
import { EventFeed } from "../../../hub/events/event-feed.ts";
import { eventStream } from "../../../hub/events/event-stream.ts";
import { MOST_STREAMS_OF_ONE } from "../../../hub/http/routes/events.ts";
import type { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

interface Seen {
  readonly id: string;
  readonly subject: string;
  readonly type: string;
}

/** Reads the hub's event stream as a browser's `EventSource` does, and remembers the last event's id. */
class Reader {
  readonly seen: Seen[] = [];
  lastId: string | undefined;
  readonly #url: string;
  readonly #token: string;
  #stop = new AbortController();
  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  async open(query = ""): Promise<Response> {
    this.#stop = new AbortController();
    const response = await fetch(`${this.#url}/api/v1/admin/events/stream${query}`, {
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(this.lastId === undefined ? {} : { "last-event-id": this.lastId }),
      },
      signal: this.#stop.signal,
    });
    if (response.ok) this.#read(response).catch(() => undefined);
    return response;
  }

  async #read(response: Response): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const messages = text.split("\n\n");
      text = messages.pop() ?? "";
      for (const message of messages) this.#take(message);
    }
  }

  #take(message: string): void {
    const fields = Object.fromEntries(
      message.split("\n").map((line) => [line.split(": ")[0], line.slice(line.indexOf(": ") + 2)]),
    );
    if (fields["id"] === undefined) return;
    this.lastId = fields["id"];
    if (fields["data"] === undefined) return;
    const { subject, type } = JSON.parse(fields["data"]) as Seen;
    this.seen.push({ id: fields["id"], subject, type });
  }

  close(): void {
    this.#stop.abort();
  }
}

describe("the stream of domain events", () => {
  let api: ApiHarness;
  let hubs: string[];
  beforeAll(async () => {
    api = await startApi();
    hubs = [await api.listen(), await api.listen()];
  });
  afterAll(() => api.close());

  const write = (subject: string) =>
    api.database.database.inTx((tx) =>
      recordDomainEvent(tx, {
        type: "node.status.changed",
        subject,
        data: { node_id: "n", hostname: "h", from: "offline", to: "active", owner: "heartbeat" },
      }),
    );
  const reader = (hub = 0) => new Reader(hubs[hub] ?? "", api.viewer);
  const subjectsOf = (one: Reader) => one.seen.map((event) => event.subject);

  it("sends new events as they happen", async () => {
    await write("nodes/before");
    const live = reader();
    const response = await live.open();
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await write("nodes/after");
    await until("the event", async () => (live.seen.length > 0 ? true : undefined));
    expect(subjectsOf(live)).toEqual(["nodes/after"]);
    live.close();
  });

  it("loses and repeats no event over 40 interruptions, two hubs, 1000 events and many writers", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `nodes/${index}`);
    const reading = reader();
    await reading.open();
    const writers = Array.from({ length: 10 }, async (_, writer) => {
      for (let at = writer; at < names.length; at += 10) await write(names[at] ?? "");
    });
    let writing = true;
    const written = Promise.all(writers).finally(() => {
      writing = false;
    });
    for (let cut = 0; cut < 40 && writing; cut += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      reading.close();
      const again = new Reader(hubs[cut % 2] ?? "", api.viewer);
      again.lastId = reading.lastId;
      again.seen.push(...reading.seen);
      Object.assign(reading, again);
      await reading.open(reading.lastId === undefined ? "?from=oldest" : "");
    }
    await written;
    const mine = () => subjectsOf(reading).filter((subject) => names.includes(subject));
    await until("all events", async () => (mine().length >= names.length ? true : undefined));
    expect(mine().toSorted()).toEqual(names.toSorted());
    reading.close();
  });

  it("sends only the requested types and subject", async () => {
    const none = reader();
    await none.open("?types=node.onboarding.*");
    const one = reader();
    await one.open("?types=node.status.changed&subject=nodes/wanted");
    await write("nodes/other");
    await write("nodes/wanted");
    await until("the event", async () => (one.seen.length > 0 ? true : undefined));
    expect(subjectsOf(one)).toEqual(["nodes/wanted"]);
    expect(none.seen).toEqual([]);
    one.close();
    none.close();
  });

  it("refuses an unknown type, an invalid cursor, and a request without a token", async () => {
    const ask = (query: string) => api.ask("GET", `/api/v1/admin/events/stream${query}`);
    expect((await ask("?types=node.exploded")).problem.code).toBe("validation_failed");
    expect((await ask("?cursor=nonsense")).problem.code).toBe("validation_failed");
    const without = await fetch(`${hubs[0]}/api/v1/admin/events/stream`);
    expect(without.status).toBe(401);
  });

  it("takes no place for HEAD requests, whose answer has no body", async () => {
    const url = `${hubs[0]}/api/v1/admin/events/stream`;
    const headers = { authorization: `Bearer ${api.viewer}` };
    for (let asked = 0; asked < 101; asked += 1) {
      const head = await fetch(url, { method: "HEAD", headers });
      expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    }
    const one = reader();
    expect((await one.open()).status).toBe(200);
    await write("nodes/after-head");
    await until("the event", async () => (subjectsOf(one).includes("nodes/after-head") ? true : undefined));
    one.close();
  });

  it("shows a token of one site only that site's events, and moves on past the others", async () => {
    const [own, other] = [randomUUID(), randomUUID()] as [SiteId, SiteId];
    const token = await apiToken(api.database, { name: "of a site", role: "viewer", sites: [own] });
    const tenant = await apiToken(api.database, { name: "of a tenant", role: "tenant", tenant: "acme" });
    const readerOf = (one: string) => new Reader(hubs[0] ?? "", one);
    const [limited, tenants, all] = [readerOf(token), readerOf(tenant), readerOf(api.admin)];
    for (const one of [limited, tenants, all]) await one.open();
    const allocation = (id: string, site: string, name: string) =>
      api.database.database.inTx((tx) =>
        recordDomainEvent(tx, {
          type: "node.allocation.active",
          subject: `allocations/${id}`,
          data: { allocation_id: id, node_id: "n", hostname: "h", site_id: site, tenant: name, message: "m" },
        }),
      );
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    await allocation(first, other, "acme");
    await allocation(second, own, "other");
    await write("nodes/of-nobody");
    await allocation(third, own, "acme");
    const named = (...ids: string[]) => ids.map((id) => `allocations/${id}`);
    await until("all events", async () => (subjectsOf(all).length === 4 ? true : undefined));
    await until("the last event", async () => (subjectsOf(limited).length === 2 ? true : undefined));
    await until("the tenant's events", async () => (subjectsOf(tenants).length === 2 ? true : undefined));
    expect(subjectsOf(limited)).toEqual(named(second, third));
    expect(subjectsOf(tenants)).toEqual(named(first, third));
    for (const one of [limited, tenants, all]) one.close();
  });

  it("is refused for a token that already has its maximum of streams, but not for another token", async () => {
    const readers = Array.from({ length: MOST_STREAMS_OF_ONE + 5 }, () => new Reader(hubs[0] ?? "", api.viewer));
    try {
      const answers = await Promise.all(readers.map((reader) => reader.open()));
      const refused = answers.filter((answer) => answer.status === 429);
      expect(refused).toHaveLength(5);
      expect(refused[0]?.headers.get("retry-after")).toBe("10");
      expect(await refused[0]?.json()).toMatchObject({ code: "rate_limited" });
      const other = new Reader(hubs[0] ?? "", api.admin);
      expect((await other.open()).status).toBe(200);
      other.close();
    } finally {
      for (const reader of readers) reader.close();
    }
    const again = new Reader(hubs[0] ?? "", api.viewer);
    await until("a place is free again", async () => ((await again.open()).status === 200 ? true : undefined));
    again.close();
  });

  it("gives its place back when it ends, even if nobody reads it", async () => {
    await write("nodes/unread");
    const { db } = api.database.database;
    const feed = new EventFeed(db, quietLog);
    const from = { after: 0n, types: [], subject: undefined, reach: EVERYWHERE, holder: "one" };
    const times = { heartbeatMs: 60_000, longestMs: 200 };
    const gone = new AbortController();
    const unread = eventStream(db, feed, { ...from, signal: gone.signal });
    const cancelled = eventStream(db, feed, { ...from, signal: gone.signal });
    eventStream(db, feed, { ...from, signal: new AbortController().signal }, times);
    expect(feed.listeners).toBe(3);
    await until("the longest time", async () => (feed.listeners === 2 ? true : undefined));
    await cancelled.cancel();
    gone.abort();
    expect(feed.listeners).toBe(0);
    for await (const _chunk of unread);
    feed.close();
  });

  it("sends heartbeats with a new cursor while only other events happen", async () => {
    const { db } = api.database.database;
    const feed = new EventFeed(db, quietLog);
    const times = { heartbeatMs: 50, longestMs: 60_000 };
    const after = await lastSettled(db);
    const wanted = { types: ["node.onboarding.*"], subject: undefined, reach: EVERYWHERE, holder: "one" };
    const stream = eventStream(db, feed, { after, ...wanted, signal: new AbortController().signal }, times);
    let writing = true;
    const writer = (async () => {
      while (writing) await write("nodes/of-others");
    })();
    const heard: string[] = [];
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
      heard.push(chunk);
      if (chunk.includes("id: ")) break;
    }
    writing = false;
    await writer;
    expect(heard.at(-1)).toMatch(/^: still here\nid: [\w-]+\n\n$/);
    const cursor = heard.at(-1)?.match(/id: ([\w-]+)/)?.[1];
    const { body } = await api.ask("GET", `/api/v1/admin/events?limit=1&cursor=${cursor}`);
    const [position] = JSON.parse(Buffer.from(cursor ?? "", "base64url").toString()) as [string];
    expect(BigInt(position)).toBeGreaterThan(after);
    expect(body.items.length).toBeLessThanOrEqual(1);
    feed.close();
  });

  it("ignores an empty Last-Event-ID", async () => {
    const one = reader();
    one.lastId = "";
    expect((await one.open()).status).toBe(200);
    one.close();
  });

  it("answers position_gone when the events after the cursor were removed", async () => {
    const early = reader();
    await early.open("?from=oldest");
    await until("an event", async () => (early.seen.length > 3 ? true : undefined));
    early.close();
    const [first] = early.seen;
    await api.database.database.pool.query("update domain_events set occurred_at = now() - interval '100 days'");
    await write("nodes/new");
    await removeOutdated(api.database.database.db, { records: 90, history: 400 });
    const late = await api.ask("GET", `/api/v1/admin/events/stream?cursor=${first?.id}`);
    expect(late.problem).toMatchObject({ status: 410, code: "position_gone" });
    expect((await api.ask("GET", `/api/v1/admin/events?cursor=${first?.id}`)).problem.code).toBe("position_gone");
    const fresh = reader();
    await fresh.open("?from=oldest");
    await until("what is left", async () => (subjectsOf(fresh).includes("nodes/new") ? true : undefined));
    expect(fresh.seen).toHaveLength(2);
    fresh.close();
  });

  it("ends with an error when events are removed before a slow reader got them", async () => {
    const { db, pool } = api.database.database;
    await pool.query(`insert into domain_events (type, subject, data)
      select 'node.status.changed', 'nodes/slow', '{}' from generate_series(1, 1000)`);
    await pool.query("update domain_events set occurred_at = now() - interval '100 days'");
    const feed = new EventFeed(db, quietLog);
    const { signal } = new AbortController();
    const reading = eventStream(db, feed, {
      after: 0n,
      types: [],
      subject: undefined,
      reach: EVERYWHERE,
      holder: "one",
      signal,
    }).getReader();
    expect((await reading.read()).done).toBe(false);
    await removeOutdated(db, { records: 90, history: 400 });
    const rest = async () => {
      while (!(await reading.read()).done);
    };
    await expect(rest()).rejects.toThrow("removed before the stream's reader took them");
    expect(feed.listeners).toBe(0);
    feed.close();
  });
});
