/** Who counts as a second person: when the request is approved, and again when the approval is used. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MOST_OPEN } from "../../../hub/people/approvals/ask-approval.ts";
import { type SeededApi, seedApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { ApprovalWorld, asked, code, FULL, REASON } from "../../support/approval-world.ts";

describe("a second person", () => {
  let world: ApprovalWorld;
  let site: SeededApi;
  let other: SeededApi;
  beforeAll(async () => {
    world = await ApprovalWorld.start();
    site = await seedApi(world.api, "dc1");
    other = await seedApi(world.api, "dc2");
    for (const one of [site, other]) await world.patched(one, { second_person: ["full_decommission"] });
  });
  afterAll(() => world.close());

  const pathOfNode = async (at = site): Promise<string> => `/nodes/${await world.node(at)}/decommission`;
  const ask = async (who: string, path: string): Promise<string> => asked(await world.post(who, path, FULL));
  const use = (who: string, path: string, approval: string) => world.post(who, path, FULL, approval);
  const approvals = async () => (await world.query("select count(*)::int as n from approvals")).rows[0]?.n;

  it("is nobody who may be the requester, because they have created or rotated the token", async () => {
    const approval = await ask("dave", await pathOfNode());
    expect(await code(world.grant("dave", approval))).toBe("own_approval");
    const own = await world.token("dave", "of-dave");
    expect(await code(world.grant(own.token, approval))).toBe("own_approval");
    const next = await world.token(own.token, "of-the-token-of-dave");
    expect(await code(world.grant(next.token, approval))).toBe("own_approval");
    const rotated = await world.token("dora", "rotated-by-dave");
    const { token } = (await world.post("dave", `/tokens/${rotated.id}/rotate`, { expires_in_days: 1 })).body;
    expect((await world.grant(token, approval)).problem).toMatchObject({
      code: "own_approval",
      detail: expect.stringMatching(/^rotated-by-dave counts as the same person as oidc:dave, /),
    });
    const free = await world.token("dora", "of-dora");
    expect((await world.grant(free.token, approval)).status).toBe(200);
    const byToken = await ask(free.token, await pathOfNode());
    expect(await code(world.grant("dora", byToken))).toBe("own_approval");
    await world.granted(byToken, "dave");
  });

  it("is no holder of the first admin token, of a machine's access token, or of their tokens, whom the hub cannot tell from the requester", async () => {
    const path = await pathOfNode();
    const approval = await ask("ann", path);
    const made = await world.token("admin", "of-admin");
    const next = await world.token(made.token, "of-a-token-of-admin");
    const ofMachine = await world.token("scheduler", "of-a-machine");
    const rotated = await world.token("admin", "of-admin-and-dora");
    const { token } = (await world.post("dora", `/tokens/${rotated.id}/rotate`, { expires_in_days: 1 })).body;
    const old = await apiToken(world.api.database, { name: "old", role: "admin" });
    await world.query("update api_tokens set known_to = '{}' where name = 'old'");
    const migrated = await apiToken(world.api.database, { name: "migrated", role: "admin" });
    await world.query("update api_tokens set known_to = array['token:' || id] where name = 'migrated'");
    const before = await approvals();
    for (const who of ["admin", "scheduler", made.token, next.token, ofMachine.token, token, old, migrated]) {
      expect((await world.grant(who, approval)).problem).toMatchObject({
        code: "own_approval",
        detail: expect.stringMatching(/^The hub cannot tell that \S+ is another person than oidc:ann, .* Sign in as/),
      });
      const request = await world.post(who, await pathOfNode(), FULL);
      expect(request.problem).toMatchObject({ code: "conflict", detail: expect.stringMatching(/cannot tell who/) });
    }
    expect(await approvals()).toBe(before);
    expect((await world.post("admin", `/approvals/${approval}/refuse`, REASON)).body.state).toBe("refused");
    const kept = await ask("ann", path);
    await world.query("update approvals set requester_ids = $2 where id = $1", [kept, [`token:${randomUUID()}`]]);
    expect((await world.grant("bob", kept)).problem).toMatchObject({
      code: "own_approval",
      detail: expect.stringMatching(/^The hub cannot tell who oidc:ann is/),
    });
  });

  it("is nobody who has rotated the token of the requester or of the second person since", async () => {
    const path = await pathOfNode();
    const mine = await world.token("dave", "asks");
    const approval = await ask(mine.token, path);
    await world.post("dora", `/tokens/${mine.id}/rotate`, { expires_in_days: 1, overlap_seconds: 3600 });
    expect(await code(world.grant("dora", approval))).toBe("own_approval");
    await world.granted(approval, "bob");
    expect((await use(mine.token, path, approval)).status).toBe(202);

    const [theirs, next] = [await world.token("dora", "approves"), await pathOfNode()];
    const given = await ask("dave", next);
    expect((await world.grant(theirs.token, given)).status).toBe(200);
    await world.post("dave", `/tokens/${theirs.id}/rotate`, { expires_in_days: 1 });
    expect((await use("dave", next, given)).problem).toMatchObject({
      code: "approval_unusable",
      detail: expect.stringMatching(/approves gave it, and counts as the same person as you now/),
    });
    await world.post("admin", `/tokens/${theirs.id}/rotate`, { expires_in_days: 1 });
    expect((await use("dave", next, given)).problem?.detail).toMatch(/the hub cannot tell any more who approves is/);
    await world.granted(given, "bob");
    expect((await use("dave", next, given)).status).toBe(202);

    const [asks, last] = [await world.token("dave", "asks-again"), await pathOfNode()];
    const lost = await ask(asks.token, last);
    await world.granted(lost, "bob");
    await world.post("admin", `/tokens/${asks.id}/rotate`, { expires_in_days: 1, overlap_seconds: 3600 });
    const { problem } = await use(asks.token, last, lost);
    expect(problem?.detail).toMatch(/the hub cannot tell any more who asks-again is, so nobody can approve it/);
  });

  it("with a token must still have the token and its right when the approval is used", async () => {
    const path = await pathOfNode();
    const approval = await ask("ann", path);
    const { id, token } = await world.token("dora", "second");
    const losses = [
      ["revoked_at = now()", "revoked_at = null"],
      ["expires_at = now()", "expires_at = now() + interval '1 day'"],
      ["role = 'viewer'", "role = 'operator'"],
      [`sites = '{${other.siteId}}'`, `sites = '{${site.siteId}}'`],
    ];
    expect((await world.grant(token, approval)).status).toBe(200);
    for (const [lost = "", back = ""] of losses) {
      await world.query(`update api_tokens set ${lost} where id = $1`, [id]);
      expect((await use("ann", path, approval)).problem).toMatchObject({
        code: "approval_unusable",
        detail: expect.stringMatching(/second gave it, and may no longer do what the request does/),
      });
      await world.query(`update api_tokens set ${back} where id = $1`, [id]);
    }
    expect((await use("ann", path, approval)).status).toBe(202);
  });

  it("who signs in must be known to have the right when the approval is used", async () => {
    const path = await pathOfNode();
    const approval = await ask("ann", path);
    const refusal = async () => (await use("ann", path, approval)).problem?.detail ?? "carried out";
    await world.granted(approval, "sam");
    world.setRole("seconds", "viewer");
    expect(await refusal()).toMatch(/oidc:sam gave it, and may no longer do what the request does/);
    world.setRole("seconds", "operator");
    await world.query(
      `insert into page_sessions (id_sha256, subject, name, claims, address, user_agent, expires_at)
        values ('of sam', 'sam', 'oidc:sam', '{"groups": ["readers"]}', '127.0.0.1', 'a browser', now() + interval '1 hour')`,
    );
    // The session of the person is newer than the access token of the approval, which is still valid.
    expect(await refusal()).toMatch(/may no longer/);
    await world.query("update page_sessions set ended_at = now() where subject = 'sam'");
    await world.query("update approvals set approver_until = now() where id = $1", [approval]);
    expect(await refusal()).toMatch(/oidc:sam gave it, and has no open session/);
    const session = (change: string) => world.query(`update page_sessions set ${change} where subject = 'sam'`);
    await session(`claims = '{"groups": ["operators-dc2"]}', ended_at = null`);
    expect(await refusal()).toMatch(/may no longer/);
    await session(`claims = '{"groups": ["seconds"]}', ended_at = now()`);
    expect(await refusal()).toMatch(/no open session/);
    await session("ended_at = null");
    expect(await refusal()).toBe("carried out");
    const { rows } = await world.query("select approver, approver_claims from approvals where id = $1", [approval]);
    expect(rows).toEqual([{ approver: "person:sam", approver_claims: null }]);
    await session("ended_at = now()");
  });

  it("is told what to do about an approval that is closed, unknown, or of a foreign site", async () => {
    const path = await pathOfNode();
    const approval = await ask("ann", path);
    await world.granted(approval, "carl");
    expect((await use("ann", path, approval)).status).toBe(202);
    const decisions = [world.grant("bob", approval), world.post("bob", `/approvals/${approval}/refuse`, REASON)];
    for (const { problem } of await Promise.all(decisions))
      expect(problem).toMatchObject({
        code: "conflict",
        detail: expect.stringMatching(/is used, so it cannot become \w+\. The hub has carried out its request\./),
      });
    const unknown = randomUUID();
    const texts: (string | undefined)[] = [];
    for (const [who, id] of [
      ["eve", approval],
      ["eve", unknown],
      ["bob", unknown],
    ] as const)
      for (const answer of [await world.send(who, "GET", `/approvals/${id}`), await world.grant(who, id)])
        texts.push(answer.problem.detail?.replace(id, "X"));
    expect(new Set(texts)).toEqual(
      new Set(["There is no approval X. List the approvals that you may see (list-approvals)."]),
    );
  });

  it("finds room for the requests of others, however many requests one requester or one site has", async () => {
    const fill = (many: number, requester: string, expires = "1 hour") =>
      world.query(
        `insert into approvals (operation, needed_right, site_id, params, body, request_sha256, does, because, requested_by, requester, requester_ids, expires_at)
          select 'decommissionNode', 'operate_nodes', $1, '{}', '{}', 'full ' || n, 'd', '[]', 'r', 'token:' || $2 || n, array[$2], now() + $4::interval
          from generate_series(1, $3::int) n`,
        [site.siteId, requester, many, expires],
      );
    const [path, known] = [await pathOfNode(), await pathOfNode()];
    const open = await ask("ann", known);
    const openAt = async (which: string): Promise<number> => {
      const isOpen = "site_id = $1 and state in ('pending', 'approved') and expires_at > now()";
      const { rows } = await world.query(`select count(*)::int as n from approvals where ${isOpen} and ${which}`, [
        site.siteId,
      ]);
      return rows[0]?.n;
    };
    await fill(MOST_OPEN.site, "person:past", "-1 hour");
    await fill(MOST_OPEN.requester - (await openAt("'person:ann' = any(requester_ids)")), "person:ann");
    expect((await world.post("ann", path, FULL)).problem).toMatchObject({
      code: "conflict",
      detail: expect.stringMatching(/^50 requests of oidc:ann at this site .* withdraw some/),
    });
    expect(await ask("ann", known)).toBe(open);
    await ask("ann", await pathOfNode(other));
    await ask("carl", path);
    await fill(MOST_OPEN.site - (await openAt("true")) - 1, "person:other");
    const last = await ask("carl", await pathOfNode());
    expect(await openAt("true")).toBe(MOST_OPEN.site);
    expect((await world.post("bob", path, FULL)).problem).toMatchObject({
      code: "conflict",
      detail: expect.stringMatching(/^500 requests of this site /),
    });
    await ask("bob", await pathOfNode(other));
    expect((await world.post("carl", `/approvals/${last}/refuse`, REASON)).body.state).toBe("withdrawn");
    await ask("bob", path);
  });
});
