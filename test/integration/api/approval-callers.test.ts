/** What the API tells each caller about a request that needs a second person, with a real database. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApprovalId } from "../../../shared/api/approvals.ts";
import { SiteId } from "../../../shared/ids.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { addWaitingApproval } from "../../support/waiting-approval.ts";

const PEOPLE = { ann: "operator", bob: "operator", vic: "viewer" } as const;
const APPROVALS = "/api/v1/admin/approvals";

describe("a request that needs a second person", () => {
  let api: ApiHarness;
  let approval: ApprovalId;
  const bearer = new Map<string, string>();

  beforeAll(async () => {
    api = await startApi();
    const { siteId } = await seedApi(api, "dc1");
    approval = await api.database.database.inTx((tx) => addWaitingApproval(tx, SiteId.parse(siteId)));
    for (const [name, role] of Object.entries(PEOPLE)) bearer.set(name, await apiToken(api.database, { name, role }));
    await api.database.database.pool.query(
      "update approvals set requester = (select 'token:' || id from api_tokens where name = 'ann')",
    );
  });
  afterAll(() => api?.close());

  const as = (who: string, method: string, path: string, body?: object) =>
    api.ask(method, `${APPROVALS}${path}`, body, { authorization: `Bearer ${bearer.get(who)}` });
  const seen = async (who: string) => {
    const { requested_by_you: own, cannot_grant: why } = (await as(who, "GET", `/${approval}`)).body;
    return { own, why };
  };

  it("says who has asked, and to everybody who cannot approve the request why", async () => {
    expect(await seen("ann")).toEqual({ own: true, why: expect.stringContaining("the same person as oidc:ann") });
    expect(await seen("bob")).toEqual({ own: false, why: null });
    expect(await seen("vic")).toEqual({ own: false, why: expect.stringContaining("needs the right operate_nodes") });
  });

  it("is found by one of several states, and says after its end that nobody can approve it", async () => {
    const listed = async (states: string) => (await as("bob", "GET", `?state=${states}`)).body.items;
    expect(await listed("approved,pending")).toMatchObject([{ id: approval, cannot_grant: null }]);
    expect((await as("ann", "POST", `/${approval}/refuse`, { reason: "a mistake" })).status).toBe(200);
    expect(await listed("approved,pending")).toEqual([]);
    expect(await listed("withdrawn,used")).toMatchObject([
      { id: approval, cannot_grant: "The request is withdrawn, so nobody can approve it." },
    ]);
    expect((await as("bob", "GET", "?state=pending,lost")).status).toBe(400);
  });
});
