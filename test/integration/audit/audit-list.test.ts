/** The list of audit entries, its filters, and the entries of refused requests. */
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RefusedRequests } from "../../../hub/http/refused-requests.ts";
import { type ApiHarness, seedApi, siteBody, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const LOGS = "/api/v1/admin/audit-logs";
interface Item {
  readonly [field: string]: unknown;
}
let api: ApiHarness;
let site: string;
beforeAll(async () => {
  api = await startApi();
  site = (await seedApi(api)).siteId;
});
afterAll(() => api.close());

const list = async (search: string): Promise<Item[]> =>
  (await api.ask("GET", `${LOGS}?limit=200&${search}`)).body.items;
const found = (search: string): Promise<Item[]> =>
  until(`an entry with ${search}`, async () => {
    const items = await list(search);
    return items.length > 0 ? items : undefined;
  });

describe("the list of audit entries", () => {
  it("says who did what, from where, and with which outcome", async () => {
    const sku = { id: "b200", gpu_vendor: "nvidia", gpus_total: 8 };
    const created = await api.ask("POST", "/api/v1/admin/skus", sku, { "x-request-id": "spoof-1" });
    // A client that chose the id could give its request the id of another request.
    expect(await list("request_id=spoof-1")).toEqual([]);
    expect(await list(`request_id=${created.headers.get("x-request-id")}`)).toEqual([
      expect.objectContaining({
        actor: "admin",
        role: "admin",
        via: "token",
        action: "createSku",
        target: "skus/b200",
        site_id: null,
        outcome: "done",
        error_code: null,
        sequence: null,
        content_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      }),
    ]);
  });

  it("filters by site, object, time, action and actor", async () => {
    const of = async (search: string) => (await list(search)).map(({ action }) => action);
    expect(await of(`site_id=${site}`)).toContain("createMaasSite");
    expect(await of(`site_id=${randomUUID()}`)).toEqual([]);
    expect(await of(`object_kind=maas-sites&object_id=${site}`)).toContain("createMaasSite");
    expect(new Set(await of("object_kind=skus"))).toEqual(new Set(["createSku"]));
    expect(await of("action=createMaasSite&actor=admin")).toEqual(["createMaasSite"]);
    expect(await of("actor=nobody")).toEqual([]);
    const [{ occurred_at: at } = {}] = await list("action=createMaasSite");
    expect(await of(`action=createMaasSite&since=${at}`)).toHaveLength(1);
    expect(await of(`action=createMaasSite&until=${at}`)).toEqual([]);
    expect((await api.ask("GET", `${LOGS}?object_id=x`)).problem.errors?.[0]?.pointer).toBe("/object_kind");
  });

  it("has the address of the socket, and ignores a header of a client that is no proxy", async () => {
    const url = new URL(await api.listen());
    const headers = {
      authorization: `Bearer ${api.admin}`,
      "content-type": "application/json",
      "x-forwarded-for": "203.0.113.9",
    };
    const sent = request({ host: url.hostname, port: url.port, path: "/api/v1/admin/skus", method: "POST", headers });
    let id = "";
    await new Promise((resolve, reject) => {
      sent.on("error", reject).on("response", (response) => {
        id = String(response.headers["x-request-id"]);
        response.resume().on("end", resolve);
      });
      sent.end(JSON.stringify({ id: "h200", gpu_vendor: "nvidia", gpus_total: 8 }));
    });
    expect((await list(`request_id=${id}`)).map(({ address }) => address)).toEqual(["127.0.0.1"]);
    expect(await list("address=127.0.0.1")).not.toEqual([]);
  });
});

describe("refused requests", () => {
  it("are audited: a missing right, a conflict, and a failed sign-in", async () => {
    const viewer = { authorization: `Bearer ${api.viewer}` };
    const id = randomUUID();
    expect((await api.ask("POST", `/api/v1/admin/nodes/${id}/cordon`, { reason: "r" }, viewer)).status).toBe(403);
    expect(await found("action=cordonNode")).toEqual([
      expect.objectContaining({
        actor: "watcher",
        role: "viewer",
        target: `nodes/${id}`,
        outcome: "refused",
        error_code: "forbidden",
        details: { requests: 1 },
      }),
    ]);
    expect((await api.ask("POST", "/api/v1/admin/maas-sites", siteBody("dc1"))).status).toBe(409);
    const conflicts = await found("action=createMaasSite&outcome=refused");
    expect(conflicts).toEqual([expect.objectContaining({ target: "maas-sites", actor: "admin" })]);
    await api.ask("GET", LOGS, undefined, { authorization: "Bearer of-nobody" });
    expect(await found("action=loginFailed")).toEqual([
      expect.objectContaining({ outcome: "refused", error_code: "unauthenticated", actor: "unknown" }),
    ]);
    // A request that is only wrong, or whose object does not exist, is no act that somebody refused.
    await api.ask("POST", "/api/v1/admin/skus", { surprise: 1 });
    await api.ask("POST", `/api/v1/admin/nodes/${id}/cordon`, { reason: "r" });
    expect((await list("outcome=refused")).map(({ error_code: code }) => code).sort()).toEqual(
      ["forbidden", "unauthenticated", conflicts[0]?.["error_code"]].sort(),
    );
  });

  it("of one kind are written once at once, and then together", async () => {
    const time = { now: 0 };
    const refused = new RefusedRequests({ ...api.database.database, log: quietLog }, () => time.now);
    const who = { source: { actor: "eve", role: "viewer", requestId: "r" }, isLimited: false };
    const note = (operationId: string, target = "nodes") => refused.note({ ...who, operationId, target }, "forbidden");
    for (let n = 0; n < 40; n += 1) note("drainNode", `nodes/${n % 30}`);
    note("cordonNode");
    refused.note({ ...who, operationId: "listNodes", target: "nodes" }, "not_found");
    refused.note({ ...who, isLimited: true, operationId: "getNode", target: "nodes" }, "not_found");
    time.now += 61_000;
    note("drainNode", "nodes/last");
    const rows = await until("all entries", async () => {
      const items = await list("actor=eve");
      return items.length >= 4 ? items : undefined;
    });
    const told = rows.map(({ action, target, details }) => `${action} ${target} ${JSON.stringify(details)}`).sort();
    // The report keeps nineteen of the first targets, and always the last one.
    const targets = [...Array.from({ length: 19 }, (_, n) => `nodes/${n + 1}`), "nodes/last"];
    expect(told).toEqual(
      [
        'cordonNode nodes {"requests":1}',
        'drainNode nodes/0 {"requests":1}',
        `drainNode nodes ${JSON.stringify({ targets, requests: 40 })}`,
        'getNode nodes {"requests":1}',
      ].sort(),
    );
  });
});
