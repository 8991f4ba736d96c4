import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NodeId, SiteId } from "../../../shared/ids.ts";
import { SanitizationDocument } from "../../../shared/sanitization-document.ts";
import { addSchedulableNode } from "../../support/allocatable-node.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { storeUnsignedRecord } from "../../support/unsigned-record.ts";

const PATH = "/api/v1/admin/sanitization-records";
const HOSTILE = `<script>alert("x")</script>&'\u001b[2J`;
let api: ApiHarness;
let url: string;
let nodeId: NodeId;
let recordId: string;
beforeAll(async () => {
  api = await startApi();
  url = await api.listen();
  const { siteId, skuId } = await seedApi(api, "dc1");
  const host = { siteId: SiteId.parse(siteId), hostname: "c07u41", sku: skuId };
  nodeId = NodeId.parse(await api.database.database.inTx((tx) => addSchedulableNode(tx, host)));
  recordId = await storeUnsignedRecord(api.database, nodeId, {
    allocation: { id: randomUUID(), tenant: HOSTILE, login_user: "ann", granted_root: true, from: null, to: null },
    residue: {
      has_baseline: true,
      items: [{ item: "units", status: "found", names: [HOSTILE], more: 0, reason: null }],
    },
    unsigned_reason: HOSTILE,
  });
});
afterAll(() => api.close());

const print = async (id: string) =>
  fetch(`${url}${PATH}/${id}/print`, { headers: { authorization: `Bearer ${api.viewer}` } });

describe("a sanitization record", () => {
  it("is read, listed and exported with the texts that were signed", async () => {
    const { body } = await api.ask("GET", `${PATH}/${recordId}`);
    expect(body).toMatchObject({
      record_id: recordId,
      node_id: nodeId,
      sequence: 1,
      verdict: "not_clean",
      tenant: HOSTILE,
      signed_by_agent: false,
      record: { reasons: expect.arrayContaining([{ code: "residue_found", about: "units" }]) },
    });
    const document = SanitizationDocument.parse((await api.ask("GET", `${PATH}/${recordId}/export`)).body);
    expect(document.agent).toBeNull();
    expect(createHash("sha256").update(document.text).digest("hex")).toBe(body.record_sha256);
    const listed = (await api.ask("GET", `${PATH}?tenant=${encodeURIComponent(HOSTILE)}`)).body.items;
    expect(listed).toMatchObject([{ record_id: recordId, verdict: "not_clean" }]);
  });

  it("is listed newest first", async () => {
    const later = [await storeUnsignedRecord(api.database, nodeId), await storeUnsignedRecord(api.database, nodeId)];
    const { items } = (await api.ask("GET", `${PATH}?hostname=c07u41&limit=2`)).body;
    expect(items.map((one: { record_id: string }) => one.record_id)).toEqual(later.toReversed());
    expect(items.map((one: { sequence: number }) => one.sequence)).toEqual([3, 2]);
  });

  it("that is the newest of its node is the node's head, page by page", async () => {
    const { siteId, skuId } = await seedApi(api, "dc2");
    const about = { siteId: SiteId.parse(siteId), sku: skuId };
    const heads: string[] = [];
    for (const hostname of ["h1", "h2"]) {
      const id = NodeId.parse(await api.database.database.inTx((tx) => addSchedulableNode(tx, { ...about, hostname })));
      await storeUnsignedRecord(api.database, id);
      heads.push(await storeUnsignedRecord(api.database, id));
    }
    const seen: { node_id: string; record_id: string; sequence: number; hostname: string; record_sha256: string }[] =
      [];
    let cursor = "";
    do {
      const { body } = await api.ask("GET", `/api/v1/admin/sanitization-heads?limit=1${cursor}`);
      seen.push(...body.items);
      cursor = body.next_cursor === null ? "" : `&cursor=${body.next_cursor}`;
    } while (cursor !== "");
    expect(seen.map((one) => one.node_id)).toEqual(seen.map((one) => one.node_id).toSorted());
    const own = seen.filter(({ hostname }) => hostname === "h1" || hostname === "h2");
    expect(own.map(({ record_id }) => record_id).toSorted()).toEqual(heads.toSorted());
    for (const { record_id, sequence, record_sha256 } of own) {
      const { body } = await api.ask("GET", `${PATH}/${record_id}`);
      expect([body.sequence, body.record_sha256]).toEqual([sequence, record_sha256]);
    }
    expect(new Set(seen.map((one) => one.node_id)).size).toBe(seen.length);
  });

  it("that does not exist is not found", async () => {
    for (const path of ["", "/export", "/print"])
      expect((await api.ask("GET", `${PATH}/${randomUUID()}${path}`)).status).toBe(404);
    expect((await api.ask("GET", `${PATH}/no-id`)).status).toBe(400);
  });

  it("cannot be written or removed by the API", async () => {
    for (const method of ["POST", "PATCH", "DELETE"] as const)
      expect((await api.ask(method, `${PATH}/${recordId}`, {})).status).toBe(405);
  });
});

describe("a validation of a sanitization record", () => {
  const validate = (id: string, body: object) => api.ask("POST", `${PATH}/${id}/validations`, body);

  it("is kept beside the record, shown with it and on its page, and in the audit", async () => {
    const before = (await api.ask("GET", `${PATH}/${recordId}`)).body;
    expect(before.validations).toEqual([]);
    const asked = { result: "rejected", title: "security <officer>", reason: "the rack has another serial number" };
    const { status, body } = await validate(recordId, asked);
    expect(status).toBe(201);
    const { record_sha256 } = before;
    expect(body).toMatchObject({ ...asked, record_id: recordId, record_sha256, validated_by: "admin", role: "admin" });
    await validate(recordId, { result: "accepted", reason: "the label was wrong" });
    const after = (await api.ask("GET", `${PATH}/${recordId}`)).body;
    expect(after.validations).toMatchObject([body, { result: "accepted", title: null }]);
    expect({ ...after, validations: [] }).toEqual(before);
    const text = await (await print(recordId)).text();
    expect(text).toContain("<td>security &lt;officer&gt;</td>");
    const { rows } = await api.database.database.pool.query(
      "select details ->> 'validation_id' as validation from audit_logs where action = 'validateSanitizationRecord' and target = $1 order by id",
      [`sanitization-records/${recordId}`],
    );
    expect(rows[0]).toEqual({ validation: body.id });
  });

  it("says whether the hub knows the person, which a token of an earlier hub does not tell", async () => {
    const id = await storeUnsignedRecord(api.database, nodeId);
    const pool = api.database.database.pool;
    expect((await validate(id, { result: "accepted", reason: "seen" })).body.is_person).toBe(false);
    expect(await (await print(id)).text()).toContain("admin (a credential that may be in the hands of anybody)");
    await pool.query("update api_tokens set known_to = '{person:dora}' where name = 'admin'");
    expect((await validate(id, { result: "accepted", reason: "seen" })).body.is_person).toBe(true);
  });

  it("is refused without a reason, of an unknown record, and beyond twenty of one record", async () => {
    const id = await storeUnsignedRecord(api.database, nodeId);
    expect((await validate(id, { result: "accepted" })).status).toBe(400);
    expect((await validate(randomUUID(), { result: "accepted", reason: "seen" })).status).toBe(404);
    for (let n = 0; n < 20; n += 1)
      expect((await validate(id, { result: "accepted", reason: "seen" })).status).toBe(201);
    expect((await validate(id, { result: "rejected", reason: "seen" })).problem).toMatchObject({ code: "conflict" });
  });

  it.each([
    "update sanitization_validations set result = 'accepted'",
    "delete from sanitization_validations",
    "truncate sanitization_validations",
  ])("is never changed or removed: %s", async (statement) => {
    const pool = api.database.database.pool;
    expect((await pool.query("select from sanitization_validations")).rowCount).toBeGreaterThan(0);
    await expect(pool.query(statement)).rejects.toThrow(
      "validations of sanitization records are never changed or removed",
    );
  });
});

describe("the page of a sanitization record", () => {
  it("shows the texts of a hostile host as text, and has no script", async () => {
    const answer = await print(recordId);
    const text = await answer.text();
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toContain("text/html");
    expect(text.match(/<script/gi)).toBeNull();
    expect(text).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#39;?[2J");
    expect(text).toContain("not_clean");
    expect(text.match(/https?:/g)).toBeNull();
  });

  it("allows nothing but its own style, also when it was saved", async () => {
    const answer = await print(recordId);
    const text = await answer.text();
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
    expect(answer.headers.get("content-security-policy")).toBe(`${policy}; frame-ancestors 'none'`);
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(text).toContain(`<meta http-equiv="Content-Security-Policy" content="${policy}">`);
    expect(text.match(/ (style|on\w+)=/g)).toBeNull();
  });

  it("needs a token", async () => {
    expect((await fetch(`${url}${PATH}/${recordId}/print`)).status).toBe(401);
  });
});
