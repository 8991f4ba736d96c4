import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adoptionNeeds, bindingNeeds, unbindingNeeds } from "../../../hub/http/routes/second-person.ts";
import { expireApprovals } from "../../../hub/people/approvals/expire-approvals.ts";
import { type NodeId, type ProfileId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { TestProvider } from "../../fakes/oidc/provider.ts";
import { type Answer, type ApiHarness, type SeededApi, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { oidcSettings } from "../../support/oidc-settings.ts";
import { addMachine, addNodeInService, retireNode } from "../../support/site-nodes.ts";

const ADMIN = "/api/v1/admin";
const REASON = { reason: "a test" };
const FULL = { mode: "full_decommission", ...REASON };
const RULES = [
  { claim: "groups", value: "admins", role: "admin" },
  { claim: "groups", value: "operators", role: "operator" },
  { claim: "groups", value: "operators-dc2", role: "operator", sites: ["dc2"] },
  { claim: "groups", value: "readers", role: "viewer" },
];
const PEOPLE = {
  ann: "operators",
  bob: "operators",
  carl: "operators",
  eve: "operators-dc2",
  dave: "admins",
  vic: "readers",
};
type Person = keyof typeof PEOPLE;

describe("a request that needs a second person", () => {
  let api: ApiHarness;
  let provider: TestProvider;
  let folder: string;
  let site: SeededApi;
  let free: SeededApi;
  const bearer = new Map<string, string>();
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "muster-approvals-"));
    writeFileSync(join(folder, "roles.json"), JSON.stringify(RULES));
    provider = await TestProvider.start([]);
    const oidc = oidcSettings(provider, { rolesFile: join(folder, "roles.json") });
    api = await startApi({ signIn: { publicUrl: null, secure: false, oidc } });
    for (const [sub, group] of Object.entries(PEOPLE))
      bearer.set(sub, await provider.accessToken({ sub, groups: [group] }));
    bearer.set("admin", api.admin);
    site = await seedApi(api, "dc1");
    free = await seedApi(api, "dc2");
    await patched(site, { second_person: ["erase", "full_decommission"] });
  });
  afterAll(async () => {
    await api?.close();
    await provider?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const query = (text: string, values: unknown[] = []) => api.database.database.pool.query(text, values);
  const send = (who: string, method: string, path: string, body?: object, headers: object = {}): Promise<Answer> =>
    api.ask(method, `${ADMIN}${path}`, body, { authorization: `Bearer ${bearer.get(who) ?? who}`, ...headers });
  const post = (who: string, path: string, body: object, approval?: string): Promise<Answer> =>
    send(who, "POST", path, body, approval === undefined ? {} : { "muster-approval": approval });
  async function patch(who: string, path: string, body: object, approval?: string): Promise<Answer> {
    const version = (await send("admin", "GET", path)).headers.get("etag") ?? "";
    const headers = { "if-match": version, ...(approval === undefined ? {} : { "muster-approval": approval }) };
    return send(who, "PATCH", path, body, headers);
  }
  async function patched({ siteId, profileId }: SeededApi, body: object): Promise<void> {
    const answer = await patch("admin", `/maas-sites/${siteId}/profiles/${profileId}`, body);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
  }

  /** Creates a node with a machine and a finished onboarding with the site's default profile. */
  async function node({ siteId, profileId }: SeededApi = site): Promise<NodeId> {
    const hostname = `h${randomUUID().slice(0, 8)}`;
    const own = { siteId: SiteId.parse(siteId), hostname };
    const id = await api.database.database.inTx(async (tx) => {
      const nodeId = await addNodeInService(tx, own);
      await addMachine(tx, { ...own, nodeId }, { status: MAAS_STATUS.deployed, ipmiIp: hostname });
      return nodeId;
    });
    const onboarding = randomUUID();
    await query(
      "insert into workflows (id, kind, status, stage, input) values ($1, 'onboard', 'completed', 'wait_for_agent_enrollment', '{}')",
      [onboarding],
    );
    await query(
      `insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
        values ($1, $2, $3, $4, 's', $5, '10.0.0.1')`,
      [onboarding, id, siteId, profileId, hostname],
    );
    return id;
  }
  function asked(answer: Answer): string {
    expect([answer.status, answer.problem?.code], JSON.stringify(answer.problem)).toEqual([409, "approval_required"]);
    return answer.problem.context?.["approval_id"] ?? "";
  }
  const entries = async (id: string): Promise<string[]> =>
    (await send("vic", "GET", `/approvals/${id}`)).body.because.map(({ entry }: { entry: string }) => entry);
  const grant = (who: string, id: string): Promise<Answer> => post(who, `/approvals/${id}/grant`, REASON);
  async function granted(id: string, who: Person = "bob"): Promise<void> {
    const answer = await grant(who, id);
    expect(answer.status, JSON.stringify(answer.problem)).toBe(200);
  }
  const state = async (id: string): Promise<string> => (await send("vic", "GET", `/approvals/${id}`)).body.state;
  const events = async (id: string): Promise<string[]> =>
    (await query("select type from domain_events where subject = $1 order by seq", [`approvals/${id}`])).rows.map(
      ({ type }) => type,
    );
  const code = async (answer: Promise<Answer>): Promise<string> => (await answer).problem?.code ?? "none";

  it("waits for somebody else, and is then carried out once", async () => {
    const id = await node();
    const path = `/nodes/${id}/decommission`;
    const approval = asked(await post("ann", path, FULL));
    expect((await query("select from node_decommissions where node_id = $1", [id])).rows).toHaveLength(0);
    expect(asked(await post("ann", path, FULL))).toBe(approval);
    const shown = (await send("vic", "GET", `/approvals?state=pending&site_id=${site.siteId}`)).body.items;
    expect(shown.find((one: { id: string }) => one.id === approval)).toMatchObject({
      operation: "decommissionNode",
      params: { id },
      body: { mode: "full_decommission", erase: "secure" },
      requested_by: "oidc:ann",
      because: [
        { entry: "erase", profile: "default" },
        { entry: "full_decommission", profile: "default" },
      ],
    });
    await granted(approval);
    expect((await post("ann", path, FULL)).problem.context).toMatchObject({ approval_id: approval, state: "approved" });
    expect((await post("ann", path, FULL, approval)).status).toBe(202);
    expect(await state(approval)).toBe("used");
    expect(await code(post("ann", path, FULL, approval))).toBe("approval_unusable");
    expect(await events(approval)).toEqual(["approval.requested", "approval.approved", "approval.used"]);
    const audit = await query(
      "select action, actor, site_id from audit_logs where target = $1 and outcome = 'done' order by id",
      [`approvals/${approval}`],
    );
    expect(audit.rows.map(({ action, actor }) => `${actor} ${action}`)).toEqual([
      "oidc:ann approval.requested",
      "oidc:bob grantApproval",
      "oidc:ann approval.used",
    ]);
    expect(new Set(audit.rows.map((row) => row.site_id))).toEqual(new Set([site.siteId]));
    const done = await query(
      "select details from audit_logs where action = 'decommissionNode' and outcome = 'done' and target = $1",
      [`nodes/${id}`],
    );
    expect(done.rows[0]?.details.approval_id).toBe(approval);
  });

  it("is used by one of two simultaneous requests", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const approval = asked(await post("ann", path, FULL));
    await granted(approval);
    const answers = await Promise.all([1, 2, 3].map(() => post("ann", path, FULL, approval)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409, 409]);
    expect(
      (
        await query("select from domain_events where type = 'approval.used' and subject = $1", [
          `approvals/${approval}`,
        ])
      ).rows,
    ).toHaveLength(1);
  });

  it("gets one approval, if it is sent twice at once", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const ids = (await Promise.all([1, 2, 3].map(() => post("ann", path, FULL)))).map(asked);
    expect(new Set(ids).size).toBe(1);
  });

  it("takes an Idempotency-Key from the first question to the repeated answer", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const key = { "idempotency-key": randomUUID() };
    const approval = asked(await send("ann", "POST", path, FULL, key));
    await granted(approval);
    const named = { ...key, "muster-approval": approval };
    const first = await send("ann", "POST", path, FULL, named);
    expect(first.status).toBe(202);
    expect((await send("ann", "POST", path, FULL, named)).body).toEqual(first.body);
  });

  it("is approved by nobody who may be its requester", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const approval = asked(await post("dave", path, FULL));
    expect(await code(grant("dave", approval))).toBe("own_approval");
    const make = async (who: string, name: string) =>
      (await post(who, "/tokens", { name, role: "admin", expires_in_days: 1 })).body as { id: string; token: string };
    const own = await make("dave", "of-dave");
    expect(await code(grant(own.token, approval))).toBe("own_approval");
    const next = await make(own.token, "of-dave-s-token");
    expect(await code(grant(next.token, approval))).toBe("own_approval");
    const rotated = await make("admin", "of-admin");
    const { token } = (await post("dave", `/tokens/${rotated.id}/rotate`, { expires_in_days: 1 })).body;
    expect(await code(grant(token, approval))).toBe("own_approval");
    const other = await make("admin", "of-the-first-token");
    expect((await grant(other.token, approval)).status).toBe(200);
    const byToken = asked(await post(other.token, `/nodes/${await node()}/decommission`, FULL));
    expect(await code(grant("admin", byToken))).toBe("own_approval");
    expect((await grant("dave", byToken)).status).toBe(200);
  });

  it("is approved only with the right of the request, at its site", async () => {
    const approval = asked(await post("ann", `/nodes/${await node()}/decommission`, FULL));
    expect(await code(grant("vic", approval))).toBe("forbidden");
    expect(await code(grant("eve", approval))).toBe("not_found");
    expect(await code(post("eve", `/approvals/${approval}/refuse`, REASON))).toBe("not_found");
    const profile = `/maas-sites/${site.siteId}/profiles/${site.profileId}`;
    const change = asked(await patch("dave", profile, { second_person: [] }));
    expect(await code(grant("ann", change))).toBe("forbidden");
    expect(await code(post("ann", `/approvals/${change}/refuse`, REASON))).toBe("forbidden");
    expect((await post("admin", `/approvals/${change}/refuse`, REASON)).body.state).toBe("refused");
    expect(await code(patch("dave", profile, { second_person: [] }, change))).toBe("approval_unusable");
  });

  it("is not carried out by an approval of something else, of somebody else, or of nobody", async () => {
    const [one, other] = [await node(), await node()];
    const path = `/nodes/${one}/decommission`;
    const approval = asked(await post("ann", path, FULL));
    expect(await code(post("ann", path, FULL, approval))).toBe("approval_unusable");
    await granted(approval);
    const refused = [
      post("ann", path, { ...FULL, erase: "quick" }, approval),
      post("ann", `/nodes/${other}/decommission`, FULL, approval),
      post("carl", path, FULL, approval),
      post("ann", path, FULL, randomUUID()),
      post("ann", path, FULL, "no id"),
    ];
    for (const answer of refused) expect(await code(answer)).toBe("approval_unusable");
    expect(await code(post("ann", `/nodes/${one}/cordon`, REASON, approval))).toBe("validation_failed");
    expect(await state(approval)).toBe("approved");
    const defaults = { ...FULL, erase: "secure", storage_cleanup: "all", agent_wait_seconds: 900 };
    expect((await post("ann", path, defaults, approval)).status).toBe(202);
  });

  it("keeps its approval if the hub refuses the request, and asks nobody for a request that cannot be carried out", async () => {
    const id = await node();
    const path = `/nodes/${id}/decommission`;
    const approval = asked(await post("ann", path, FULL));
    await granted(approval);
    const drain = (await post("carl", `/nodes/${id}/drain`, REASON)).body.decommission_id;
    expect(await code(post("ann", path, FULL, approval))).toBe("operation_exists");
    expect(await code(post("carl", path, FULL))).toBe("operation_exists");
    expect(await state(approval)).toBe("approved");
    await query("delete from workflow_subjects where workflow_id = $1", [drain]);
    expect((await post("ann", path, FULL, approval)).status).toBe(202);
  });

  it("expires, and may be asked for again", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const [pending, approved] = [
      asked(await post("ann", path, FULL)),
      asked(await post("ann", path, { ...FULL, erase: "quick" })),
    ];
    await granted(approved);
    await query("update approvals set expires_at = now() where id = any($1)", [[pending, approved]]);
    expect([await state(pending), await state(approved)]).toEqual(["expired", "expired"]);
    expect(await code(grant("bob", pending))).toBe("conflict");
    expect(await code(post("ann", path, { ...FULL, erase: "quick" }, approved))).toBe("approval_unusable");
    const again = asked(await post("ann", path, FULL));
    expect(again).not.toBe(pending);
    expect(await events(pending)).toEqual(["approval.requested", "approval.expired"]);
    await expireApprovals(api.database.database.inTx);
    expect(await events(approved)).toEqual(["approval.requested", "approval.approved", "approval.expired"]);
    expect((await send("vic", "GET", "/approvals?state=expired")).body.items).toHaveLength(2);
    expect(await state(again)).toBe("pending");
  });

  it("is withdrawn by its requester, and refused by others even after its approval", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const first = asked(await post("ann", path, FULL));
    expect((await post("ann", `/approvals/${first}/refuse`, REASON)).body).toMatchObject({ state: "withdrawn" });
    const second = asked(await post("ann", path, FULL));
    await granted(second);
    expect((await post("carl", `/approvals/${second}/refuse`, REASON)).body).toMatchObject({
      state: "refused",
      decided_by: "oidc:carl",
      decision_reason: "a test",
    });
    expect(await code(post("ann", path, FULL, second))).toBe("approval_unusable");
    expect(await events(second)).toEqual(["approval.requested", "approval.approved", "approval.refused"]);
  });

  it("is not carried out if its second person may no longer do the same", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const approval = asked(await post("ann", path, FULL));
    const token = await apiToken(api.database, { name: "second", role: "operator" });
    expect((await grant(token, approval)).status).toBe(200);
    await query("update api_tokens set revoked_at = now() where name = 'second'");
    expect(await code(post("ann", path, FULL, approval))).toBe("approval_unusable");
    await granted(approval);
    await query(
      `insert into page_sessions (id_sha256, subject, name, claims, address, user_agent, expires_at)
        values ('of bob', 'bob', 'oidc:bob', '{"groups": ["readers"]}', '127.0.0.1', 'a browser', now() + interval '1 hour')`,
    );
    expect(await code(post("ann", path, FULL, approval))).toBe("approval_unusable");
    await query(`update page_sessions set claims = '{"groups": ["operators-dc2"]}' where subject = 'bob'`);
    expect(await code(post("ann", path, FULL, approval))).toBe("approval_unusable");
    await granted(approval, "carl");
    expect((await post("ann", path, FULL, approval)).status).toBe(202);
    await query("delete from page_sessions where subject = 'bob'");
  });

  it("is each request by hand that erases disks or ends the service of a host, and none at a site that asks nobody", async () => {
    const [id, retired, unasked] = [await node(), await node(), await node(free)];
    await api.database.database.inTx((tx) => retireNode(tx, retired));
    const reasons = async (path: string, body: object): Promise<string[]> =>
      entries(asked(await post("ann", path, body)));
    expect(await reasons(`/nodes/${id}/decommission`, { mode: "reimage", ...REASON })).toEqual(["erase"]);
    expect(await reasons(`/nodes/${id}/decommission`, { mode: "soft_reset", ...REASON })).toEqual(["erase"]);
    expect(await reasons(`/nodes/${retired}/release`, REASON)).toEqual(["full_decommission"]);
    expect(await reasons(`/nodes/${retired}/remove`, REASON)).toEqual(["full_decommission"]);
    expect((await post("ann", `/nodes/${id}/drain`, REASON)).status).toBe(202);
    expect((await post("ann", `/nodes/${unasked}/decommission`, FULL)).status).toBe(202);
  });

  it("is the force of a full decommission, too", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const approval = asked(await post("ann", path, FULL));
    await granted(approval);
    const { decommission_id: id } = (await post("ann", path, FULL, approval)).body;
    const force = asked(await post("ann", `/decommissions/${id}/force`, REASON));
    await granted(force);
    expect((await post("ann", `/decommissions/${id}/force`, REASON, force)).status).toBe(200);
  });

  it("is a whole batch with one approval, if any of its nodes asks", async () => {
    const ids = [await node(), await node()];
    const body = { site_id: site.siteId, operation: { mode: "reimage", ...REASON }, node_ids: ids };
    expect((await post("ann", "/decommissions/batch", { ...body, plan: true })).status).toBe(202);
    const approval = asked(await post("ann", "/decommissions/batch", body));
    expect((await send("vic", "GET", `/approvals/${approval}`)).body.does).toMatch(/^Deploy again 2 nodes/);
    await granted(approval);
    const done = await post("ann", "/decommissions/batch", body, approval);
    expect([done.status, done.body.accepted]).toEqual([202, 2]);
    const { node_ids: _, ...all } = body;
    const filtered = { ...all, filter: { status: "active" } };
    const { matched } = (await post("ann", "/decommissions/batch", { ...filtered, plan: true })).body;
    await post("ann", "/decommissions/batch", { ...filtered, expected_count: matched }).then(asked);
    const drains = { ...body, operation: { mode: "drain", ...REASON }, node_ids: [await node()] };
    expect((await post("ann", "/decommissions/batch", drains)).status).toBe(202);
  });

  it("is the change of scripts in a profile, a profile that asks less, and a new default profile that asks less", async () => {
    const own = await seedApi(api, "dc3");
    const profiles = `/maas-sites/${own.siteId}/profiles`;
    const path = `${profiles}/${own.profileId}`;
    await patched(own, { second_person: ["scripts"], testing_scripts: ["none"] });
    const scripts = { commissioning_scripts: ["burn-in"] };
    const change = asked(await patch("dave", path, scripts));
    expect(asked(await patch("dave", `/maas-sites/${own.siteId}/policy`, scripts))).not.toBe(change);
    expect((await patch("dave", path, { description: "not a script", testing_scripts: ["none"] })).status).toBe(200);
    expect((await grant("admin", change)).status).toBe(200);
    expect((await patch("dave", path, scripts, change)).status).toBe(200);
    expect(await entries(asked(await patch("dave", path, { second_person: [] })))).toEqual(["scripts"]);
    const less = asked(await post("dave", profiles, { name: "less" }));
    await grant("admin", less);
    const { id: lessId } = (await post("dave", profiles, { name: "less" }, less)).body;
    const siteId = SiteId.parse(own.siteId);
    const adopted = (plan: boolean, profile_id?: ProfileId) =>
      api.database.database.inTx((tx) => adoptionNeeds(tx, siteId, { plan, profile_id }));
    const bound = async (plan: boolean, profile_id?: ProfileId) => {
      const id = await node(own);
      return api.database.database.inTx((tx) => bindingNeeds(tx, id, { plan, profile_id }));
    };
    const because = [{ entry: "scripts", profile: "default" }];
    for (const needs of [adopted, bound]) {
      expect(await needs(false, lessId)).toMatchObject({ siteId, because, does: expect.stringContaining("less") });
      expect([await needs(true, lessId), await needs(false), await needs(false, own.profileId as ProfileId)]).toEqual([
        null,
        null,
        null,
      ]);
    }
    const bind = await node(own);
    await query(
      "insert into node_adoptions (node_id, site_id, profile_id, adopted_by, past_unknown, differences) values ($1, $2, $3, 'ann', false, '[]')",
      [bind, own.siteId, own.profileId],
    );
    const unbound = () => api.database.database.inTx((tx) => unbindingNeeds(tx, bind));
    expect(await unbound()).toBeNull();
    const scripted = { name: "scripted", second_person: ["scripts"], ...scripts };
    expect(await entries(asked(await post("dave", profiles, scripted)))).toContain("scripts");
    expect((await post("dave", profiles, { name: "same", second_person: ["scripts"] })).status).toBe(201);
    const move = { default_profile_id: lessId };
    const moved = asked(await patch("dave", `/maas-sites/${own.siteId}`, move));
    await grant("admin", moved);
    expect((await patch("dave", `/maas-sites/${own.siteId}`, move, moved)).body.default_profile_id).toBe(lessId);
    expect(await unbound()).toMatchObject({ because });
  });
});
