import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adoptionNeeds, bindingNeeds, unbindingNeeds } from "../../../hub/http/routes/second-person.ts";
import type { Fixed } from "../../../hub/people/approvals/ask-approval.ts";
import { expireApprovals } from "../../../hub/people/approvals/expire-approvals.ts";
import { type NodeId, type ProfileId, SiteId } from "../../../shared/ids.ts";
import { type SeededApi, seedApi } from "../../support/api-harness.ts";
import { ApprovalWorld, asked, code, FULL, REASON } from "../../support/approval-world.ts";
import { retireNode } from "../../support/site-nodes.ts";

describe("a request that needs a second person", () => {
  let world: ApprovalWorld;
  let site: SeededApi;
  let free: SeededApi;
  beforeAll(async () => {
    world = await ApprovalWorld.start();
    site = await seedApi(world.api, "dc1");
    free = await seedApi(world.api, "dc2");
    await world.patched(site, { second_person: ["erase", "full_decommission"] });
  });
  afterAll(() => world.close());

  const node = (at: SeededApi = site): Promise<NodeId> => world.node(at);
  const entries = async (id: string): Promise<string[]> =>
    (await world.shown(id)).because.map(({ entry }: { entry: string }) => entry);
  const state = async (id: string): Promise<string> => (await world.shown(id)).state;
  const events = async (id: string): Promise<string[]> =>
    (await world.query("select type from domain_events where subject = $1 order by seq", [`approvals/${id}`])).rows.map(
      ({ type }) => type,
    );

  it("waits for somebody else, and is then carried out once", async () => {
    const id = await node();
    const path = `/nodes/${id}/decommission`;
    const approval = asked(await world.post("ann", path, FULL));
    expect((await world.query("select from node_decommissions where node_id = $1", [id])).rows).toHaveLength(0);
    expect(asked(await world.post("ann", path, FULL))).toBe(approval);
    const shown = (await world.send("vic", "GET", `/approvals?state=pending&site_id=${site.siteId}`)).body.items;
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
    await world.granted(approval);
    expect((await world.post("ann", path, FULL)).problem.context).toMatchObject({
      approval_id: approval,
      state: "approved",
    });
    expect((await world.post("ann", path, FULL, approval)).status).toBe(202);
    expect(await state(approval)).toBe("used");
    expect(await code(world.post("ann", path, FULL, approval))).toBe("approval_unusable");
    expect(await events(approval)).toEqual(["approval.requested", "approval.approved", "approval.used"]);
    const audit = await world.query(
      "select action, actor, site_id from audit_logs where target = $1 and outcome = 'done' order by id",
      [`approvals/${approval}`],
    );
    expect(audit.rows.map(({ action, actor }) => `${actor} ${action}`)).toEqual([
      "oidc:ann approval.requested",
      "oidc:bob grantApproval",
      "oidc:ann approval.used",
    ]);
    expect(new Set(audit.rows.map((row) => row.site_id))).toEqual(new Set([site.siteId]));
    const done = await world.query(
      "select details from audit_logs where action = 'decommissionNode' and outcome = 'done' and target = $1",
      [`nodes/${id}`],
    );
    expect(done.rows[0]?.details.approval_id).toBe(approval);
  });

  it("is used by one of two simultaneous requests", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const approval = asked(await world.post("ann", path, FULL));
    await world.granted(approval);
    const answers = await Promise.all([1, 2, 3].map(() => world.post("ann", path, FULL, approval)));
    const codes = answers.map(({ status, problem }) => (status === 202 ? "202" : problem.code));
    expect(codes.toSorted()).toEqual(["202", "approval_unusable", "approval_unusable"]);
    expect(
      (
        await world.query("select from domain_events where type = 'approval.used' and subject = $1", [
          `approvals/${approval}`,
        ])
      ).rows,
    ).toHaveLength(1);
  });

  it("gets one approval, if it is sent twice at once", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const ids = (await Promise.all([1, 2, 3].map(() => world.post("ann", path, FULL)))).map(asked);
    expect(new Set(ids).size).toBe(1);
  });

  it("takes an Idempotency-Key from the first question to the repeated answer", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const key = { "idempotency-key": randomUUID() };
    const approval = asked(await world.send("ann", "POST", path, FULL, key));
    await world.granted(approval);
    const named = { ...key, "muster-approval": approval };
    const first = await world.send("ann", "POST", path, FULL, named);
    expect(first.status).toBe(202);
    expect((await world.send("ann", "POST", path, FULL, named)).body).toEqual(first.body);
  });

  it("is approved only with the right of the request, at its site", async () => {
    const approval = asked(await world.post("ann", `/nodes/${await node()}/decommission`, FULL));
    expect(await code(world.grant("vic", approval))).toBe("forbidden");
    expect(await code(world.grant("eve", approval))).toBe("not_found");
    expect(await code(world.post("eve", `/approvals/${approval}/refuse`, REASON))).toBe("not_found");
    const profile = `/maas-sites/${site.siteId}/profiles/${site.profileId}`;
    const change = asked(await world.patch("dave", profile, { second_person: [] }));
    expect(await code(world.grant("ann", change))).toBe("forbidden");
    expect(await code(world.post("ann", `/approvals/${change}/refuse`, REASON))).toBe("forbidden");
    expect((await world.post("dora", `/approvals/${change}/refuse`, REASON)).body.state).toBe("refused");
    expect(await code(world.patch("dave", profile, { second_person: [] }, change))).toBe("approval_unusable");
  });

  it("is not carried out by an approval of something else, of somebody else, or of nobody", async () => {
    const [one, other] = [await node(), await node()];
    const path = `/nodes/${one}/decommission`;
    const approval = asked(await world.post("ann", path, FULL));
    expect(await code(world.post("ann", path, FULL, approval))).toBe("approval_unusable");
    await world.granted(approval);
    const refused = [
      world.post("ann", path, { ...FULL, erase: "quick" }, approval),
      world.post("ann", `/nodes/${other}/decommission`, FULL, approval),
      world.post("carl", path, FULL, approval),
      world.post("ann", path, FULL, randomUUID()),
      world.post("ann", path, FULL, "no id"),
    ];
    for (const answer of refused) expect(await code(answer)).toBe("approval_unusable");
    expect(await code(world.post("ann", `/nodes/${one}/cordon`, REASON, approval))).toBe("validation_failed");
    expect(await state(approval)).toBe("approved");
    const defaults = { ...FULL, erase: "secure", storage_cleanup: "all", agent_wait_seconds: 900 };
    expect((await world.post("ann", path, defaults, approval)).status).toBe(202);
  });

  it("keeps its approval if the hub refuses the request, and asks nobody for a request that cannot be carried out", async () => {
    const id = await node();
    const path = `/nodes/${id}/decommission`;
    const approval = asked(await world.post("ann", path, FULL));
    await world.granted(approval);
    const drain = (await world.post("carl", `/nodes/${id}/drain`, REASON)).body.decommission_id;
    expect(await code(world.post("ann", path, FULL, approval))).toBe("operation_exists");
    expect(await code(world.post("carl", path, FULL))).toBe("operation_exists");
    expect(await state(approval)).toBe("approved");
    await world.query("delete from workflow_subjects where workflow_id = $1", [drain]);
    expect((await world.post("ann", path, FULL, approval)).status).toBe(202);
  });

  it("expires, and may be asked for again", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const [pending, approved] = [
      asked(await world.post("ann", path, FULL)),
      asked(await world.post("ann", path, { ...FULL, erase: "quick" })),
    ];
    await world.granted(approved);
    await world.query("update approvals set expires_at = now() where id = any($1)", [[pending, approved]]);
    expect([await state(pending), await state(approved)]).toEqual(["expired", "expired"]);
    expect(await code(world.grant("bob", pending))).toBe("conflict");
    expect(await code(world.post("ann", path, { ...FULL, erase: "quick" }, approved))).toBe("approval_unusable");
    const again = asked(await world.post("ann", path, FULL));
    expect(again).not.toBe(pending);
    expect(await events(pending)).toEqual(["approval.requested", "approval.expired"]);
    await expireApprovals(world.api.database.database.inTx);
    expect(await events(approved)).toEqual(["approval.requested", "approval.approved", "approval.expired"]);
    expect((await world.send("vic", "GET", "/approvals?state=expired")).body.items).toHaveLength(2);
    expect(await state(again)).toBe("pending");
  });

  it("is withdrawn by its requester, and refused by others even after its approval", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const first = asked(await world.post("ann", path, FULL));
    expect((await world.post("ann", `/approvals/${first}/refuse`, REASON)).body).toMatchObject({ state: "withdrawn" });
    const second = asked(await world.post("ann", path, FULL));
    await world.granted(second);
    expect((await world.post("carl", `/approvals/${second}/refuse`, REASON)).body).toMatchObject({
      state: "refused",
      decided_by: "oidc:carl",
      decision_reason: "a test",
    });
    expect(await code(world.post("ann", path, FULL, second))).toBe("approval_unusable");
    expect(await events(second)).toEqual(["approval.requested", "approval.approved", "approval.refused"]);
  });

  it("is each request by hand that erases disks or ends the service of a host, and none at a site that asks nobody", async () => {
    const [id, retired, unasked] = [await node(), await node(), await node(free)];
    await world.api.database.database.inTx((tx) => retireNode(tx, retired));
    const reasons = async (path: string, body: object): Promise<string[]> =>
      entries(asked(await world.post("ann", path, body)));
    expect(await reasons(`/nodes/${id}/decommission`, { mode: "reimage", ...REASON })).toEqual(["erase"]);
    expect(await reasons(`/nodes/${id}/decommission`, { mode: "soft_reset", ...REASON })).toEqual(["erase"]);
    for (const verb of ["release", "remove"])
      expect(await reasons(`/nodes/${retired}/${verb}`, REASON)).toEqual(["erase", "full_decommission"]);
    expect((await world.post("ann", `/nodes/${id}/drain`, REASON)).status).toBe(202);
    expect((await world.post("ann", `/nodes/${unasked}/decommission`, FULL)).status).toBe(202);
  });

  it("is the force of a full decommission, too", async () => {
    const path = `/nodes/${await node()}/decommission`;
    const approval = asked(await world.post("ann", path, FULL));
    await world.granted(approval);
    const { decommission_id: id } = (await world.post("ann", path, FULL, approval)).body;
    const force = asked(await world.post("ann", `/decommissions/${id}/force`, REASON));
    await world.granted(force);
    expect((await world.post("ann", `/decommissions/${id}/force`, REASON, force)).status).toBe(200);
  });

  it("is a whole batch with one approval, if any of its nodes asks", async () => {
    const ids = [await node(), await node()];
    const body = { site_id: site.siteId, operation: { mode: "reimage", ...REASON }, node_ids: ids };
    expect((await world.post("ann", "/decommissions/batch", { ...body, plan: true })).status).toBe(202);
    const approval = asked(await world.post("ann", "/decommissions/batch", body));
    expect((await world.send("vic", "GET", `/approvals/${approval}`)).body.does).toMatch(/^Deploy again 2 nodes/);
    await world.granted(approval);
    const done = await world.post("ann", "/decommissions/batch", body, approval);
    expect([done.status, done.body.accepted]).toEqual([202, 2]);
    const { node_ids: _, ...all } = body;
    const filtered = { ...all, filter: { status: "active" } };
    const { matched } = (await world.post("ann", "/decommissions/batch", { ...filtered, plan: true })).body;
    await world.post("ann", "/decommissions/batch", { ...filtered, expected_count: matched }).then(asked);
    const drains = { ...body, operation: { mode: "drain", ...REASON }, node_ids: [await node()] };
    expect((await world.post("ann", "/decommissions/batch", drains)).status).toBe(202);
  });

  it("is the change of scripts in a profile, a profile that asks less, and a new default profile that asks less", async () => {
    const own = await seedApi(world.api, "dc3");
    const profiles = `/maas-sites/${own.siteId}/profiles`;
    const path = `${profiles}/${own.profileId}`;
    await world.patched(own, { second_person: ["scripts"], testing_scripts: ["none"] });
    const scripts = { commissioning_scripts: ["burn-in"] };
    const change = asked(await world.patch("dave", path, scripts));
    expect(asked(await world.patch("dave", `/maas-sites/${own.siteId}/policy`, scripts))).not.toBe(change);
    expect((await world.patch("dave", path, { description: "not a script", testing_scripts: ["none"] })).status).toBe(
      200,
    );
    expect((await world.grant("dora", change)).status).toBe(200);
    expect((await world.patch("dave", path, scripts, change)).status).toBe(200);
    expect(await entries(asked(await world.patch("dave", path, { second_person: [] })))).toEqual(["scripts"]);
    const less = asked(await world.post("dave", profiles, { name: "less" }));
    await world.granted(less, "dora");
    const { id: lessId } = (await world.post("dave", profiles, { name: "less" }, less)).body;
    const siteId = SiteId.parse(own.siteId);
    const adopted = (plan: boolean, profile_id?: ProfileId) =>
      world.api.database.database.inTx((tx) => adoptionNeeds(tx, siteId, { plan, profile_id }, null));
    const bound = async (plan: boolean, profile_id?: ProfileId) => {
      const id = await node(own);
      return world.api.database.database.inTx((tx) => bindingNeeds(tx, id, { plan, profile_id }));
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
    const filtered: Fixed = { of: "machines", ids: ["abc", "def"], names: ["h1", "h2"] };
    const adoptions: [{ system_ids?: string[]; hostnames?: string[] }, Fixed | null, string][] = [
      [{ system_ids: ["abc"], hostnames: ["h1"] }, null, "2 adopted machines (abc, h1)"],
      [{ hostnames: ["h1"] }, null, "the adopted machine h1"],
      [{}, filtered, "2 adopted machines (h1, h2)"],
    ];
    for (const [body, fixed, told] of adoptions) {
      const request = { plan: false, profile_id: lessId, ...body };
      const needs = await world.api.database.database.inTx((tx) => adoptionNeeds(tx, siteId, request, fixed));
      expect(needs?.does).toContain(`Give ${told} the profile less`);
    }
    const bind = await node(own);
    await world.query(
      "insert into node_adoptions (node_id, site_id, profile_id, adopted_by, past_unknown, differences) values ($1, $2, $3, 'ann', false, '[]')",
      [bind, own.siteId, own.profileId],
    );
    const unbound = () => world.api.database.database.inTx((tx) => unbindingNeeds(tx, bind));
    expect(await unbound()).toBeNull();
    const scripted = { name: "scripted", second_person: ["scripts"], ...scripts };
    expect(await entries(asked(await world.post("dave", profiles, scripted)))).toContain("scripts");
    expect((await world.post("dave", profiles, { name: "same", second_person: ["scripts"] })).status).toBe(201);
    const move = { default_profile_id: lessId };
    const moved = asked(await world.patch("dave", `/maas-sites/${own.siteId}`, move));
    await world.granted(moved, "dora");
    expect((await world.patch("dave", `/maas-sites/${own.siteId}`, move, moved)).body.default_profile_id).toBe(lessId);
    expect(await unbound()).toMatchObject({ because });
  });
});
