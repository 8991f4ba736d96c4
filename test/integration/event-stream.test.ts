import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordDomainEvent } from "../../hub/db/queries/domain-events.ts";
import { removeOutdated } from "../../hub/db/queries/retention.ts";
import { type ApiHarness, startApi } from "../support/api-harness.ts";
import { until } from "../support/until.ts";

interface Seen {
  readonly id: string;
  readonly subject: string;
  readonly type: string;
}

/** Reads the stream as a browser's EventSource does, remembering the last id. */
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
    const { subject, type } = JSON.parse(fields["data"] ?? "{}") as Seen;
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

  it("shows what happens from now on, as it happens", async () => {
    await write("nodes/before");
    const live = reader();
    const response = await live.open();
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await write("nodes/after");
    await until("the event", async () => (live.seen.length > 0 ? true : undefined));
    expect(subjectsOf(live)).toEqual(["nodes/after"]);
    live.close();
  });

  it("loses and doubles none over 40 interruptions, two hubs and 1000 events of many writers", async () => {
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

  it("shows only the types and the subject that were asked for", async () => {
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

  it("refuses a type that does not exist, a cursor that is none, and who has no token", async () => {
    const ask = (query: string) => api.ask("GET", `/api/v1/admin/events/stream${query}`);
    expect((await ask("?types=node.exploded")).problem.code).toBe("validation_failed");
    expect((await ask("?cursor=nonsense")).problem.code).toBe("validation_failed");
    const without = await fetch(`${hubs[0]}/api/v1/admin/events/stream`);
    expect(without.status).toBe(401);
  });

  it("says that what a reader missed is gone, instead of leaving it out", async () => {
    const early = reader();
    await early.open("?from=oldest");
    await until("an event", async () => (early.seen.length > 3 ? true : undefined));
    early.close();
    const [first] = early.seen;
    await api.database.database.pool.query("update domain_events set occurred_at = now() - interval '100 days'");
    await write("nodes/new");
    await removeOutdated(api.database.database.db, 90);
    const late = await api.ask("GET", `/api/v1/admin/events/stream?cursor=${first?.id}`);
    expect(late.problem).toMatchObject({ status: 410, code: "position_gone" });
    expect((await api.ask("GET", `/api/v1/admin/events?cursor=${first?.id}`)).problem.code).toBe("position_gone");
    const fresh = reader();
    await fresh.open("?from=oldest");
    await until("what is left", async () => (subjectsOf(fresh).includes("nodes/new") ? true : undefined));
    expect(fresh.seen).toHaveLength(2);
    fresh.close();
  });
});
