/**
 * Every request in NICo's form, for every role, at its own and at a foreign site, and for a foreign tenant (decisions I3 and R3). The cases come from the
 * list of endpoints, so that a new endpoint is tested without a line in this file.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Endpoint } from "../../../hub/http/nico/endpoint.ts";
import { ENDPOINTS } from "../../../hub/http/nico/facade.ts";
import { hasRight } from "../../../shared/api/rights.ts";
import { API_ROLES, type ApiRole, isRoleOfTenants } from "../../../shared/api/roles.ts";
import { type NodeId, SiteId } from "../../../shared/ids.ts";
import { MAAS_STATUS } from "../../../shared/maas-status.ts";
import { addSchedulableNode, SSH_KEY } from "../../support/allocatable-node.ts";
import { type Answer, type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { apiToken } from "../../support/api-token.ts";
import { addMachine } from "../../support/site-nodes.ts";

const BASE = "/v2/org/acme/nico";
/** The lists of kinds that belong to no site or tenant: SKUs are instance types everywhere, and Muster has no objects of the absent kinds. */
const OF_NOBODY = [
  ...["nicoListInstanceTypes", "nicoGetInstanceType"],
  ...ENDPOINTS.flatMap(({ place, operationId }) => (place === "everywhere" ? [operationId] : [])),
];

describe("every request in NICo's form, for every role", () => {
  let api: ApiHarness;
  let siteId: SiteId;
  let foreign: SiteId;
  let nodeId: NodeId;
  let ids: Readonly<Record<string, string>>;
  let made = 0;
  beforeAll(async () => {
    api = await startApi({ nicoOrg: "acme" });
    const seeded = await seedApi(api);
    siteId = SiteId.parse(seeded.siteId);
    foreign = SiteId.parse((await seedApi(api, "dc2")).siteId);
    const { inTx } = api.database.database;
    const add = (hostname: string) => inTx((tx) => addSchedulableNode(tx, { siteId, hostname, sku: seeded.skuId }));
    nodeId = await add("n1");
    const used = await add("n2");
    await inTx((tx) => addMachine(tx, { siteId, hostname: "n1", nodeId }, { status: MAAS_STATUS.deployed }));
    const make = async (path: string, body: object) => (await api.ask("POST", `/api/v1/admin${path}`, body)).body.id;
    const ofTenant = { tenant: "acme", site_ids: [siteId] };
    const key = await make("/ssh-keys", { ...ofTenant, name: "laptop", public_key: SSH_KEY });
    ids = {
      node: nodeId,
      site: siteId,
      sku: (await api.ask("GET", `${BASE}/instance/type`)).body[0].id,
      ssh_key: key,
      ssh_key_group: await make("/ssh-key-groups", { ...ofTenant, name: "team", key_ids: [key] }),
      allocation: await make("/allocations", { node_id: used, tenant: "acme", login_user: "ada", ssh_keys: [SSH_KEY] }),
    };
    expect(Object.entries(ids).filter(([, id]) => id === undefined)).toEqual([]);
  });
  afterAll(() => api?.close());

  interface Limit {
    readonly sites: readonly SiteId[] | null;
    readonly tenant?: string;
  }
  function tokenOf(role: ApiRole, { sites, tenant = "acme" }: Limit): Promise<string> {
    made += 1;
    const limit = { sites: sites === null ? null : [...sites], tenant: isRoleOfTenants(role) ? tenant : null };
    return apiToken(api.database, { name: `${role} ${made}`, role, ...limit });
  }
  const kindOf = ({ place }: Endpoint): string => (typeof place === "object" && "of" in place ? place.of : "sku");
  const ask = (endpoint: Endpoint, token: string): Promise<Answer> => {
    const path = endpoint.path.replace("{id}", ids[kindOf(endpoint)] ?? "").replace(/\{\w+\}/g, "degraded");
    const body = endpoint.method === "GET" || endpoint.method === "DELETE" ? undefined : {};
    return api.ask(endpoint.method, `${BASE}${path}`, body, { authorization: `Bearer ${token}` });
  };
  const isNamed = ({ place }: Endpoint): boolean => typeof place === "object";
  const rolesFor = (endpoint: Endpoint) => API_ROLES.filter((role) => hasRight(role, endpoint.right));
  const cases = ENDPOINTS.map((endpoint) => [endpoint.operationId, endpoint] as const);

  it.each(cases)("%s refuses each role without its right, and changes nothing", async (_, endpoint) => {
    const before = await api.counts();
    for (const role of API_ROLES.filter((one) => !hasRight(one, endpoint.right))) {
      const answer = await ask(endpoint, await tokenOf(role, { sites: null }));
      expect([role, answer.status]).toEqual([role, 403]);
    }
    expect(await api.counts()).toEqual(before);
  });

  it.each(cases.filter(([, endpoint]) => isNamed(endpoint)))(
    "%s finds no object of a foreign site, of no site, or of a foreign tenant",
    async (_, endpoint) => {
      const before = await api.counts();
      const limits: Limit[] = [{ sites: [foreign] }, { sites: [SiteId.parse(randomUUID())] }, { sites: [] }];
      for (const role of rolesFor(endpoint)) {
        const more: Limit[] = isRoleOfTenants(role) ? [{ sites: null, tenant: "other" }] : [];
        for (const limit of [...limits, ...more]) {
          const answer = await ask(endpoint, await tokenOf(role, limit));
          expect([role, limit, answer.status]).toEqual([role, limit, 404]);
        }
      }
      expect(await api.counts()).toEqual(before);
    },
  );

  const lists = cases.filter(
    ([id, { method, place }]) => method === "GET" && place === "list" && !OF_NOBODY.includes(id),
  );
  it.each(lists)("%s lists what is within the caller's reach, and nothing else", async (_, endpoint) => {
    for (const role of rolesFor(endpoint)) {
      const own = await ask(endpoint, await tokenOf(role, { sites: [siteId] }));
      expect([role, own.status], JSON.stringify(own.body)).toEqual([role, 200]);
      const others: Limit[] = [{ sites: [] }, ...(isRoleOfTenants(role) ? [{ sites: null, tenant: "other" }] : [])];
      for (const limit of others) {
        const { status, body } = await ask(endpoint, await tokenOf(role, limit));
        // An instance type belongs to the sites with nodes of its SKU.
        if (endpoint.path.includes("{id}")) expect([role, limit, status]).toEqual([role, limit, 404]);
        else expect([role, limit, status, body]).toEqual([role, limit, 200, []]);
      }
      const shown = JSON.stringify((await ask(endpoint, await tokenOf(role, { sites: [foreign] }))).body);
      for (const id of [nodeId, ids["allocation"], ids["ssh_key"], ids["ssh_key_group"], siteId])
        expect(shown, `${role} at a foreign site`).not.toContain(id);
    }
  });

  it("lists the objects of their own site to some roles, so that the empty lists above say something", async () => {
    const seen = new Set<string>();
    for (const [id, endpoint] of lists) {
      const { body } = await ask(endpoint, await tokenOf("admin", { sites: [siteId] }));
      if ((body as unknown[]).length > 0) seen.add(id);
    }
    expect([...seen].toSorted()).toEqual(
      expect.arrayContaining([
        "nicoListInstances",
        "nicoListMachines",
        "nicoListSites",
        "nicoListSshKeyGroups",
        "nicoListSshKeys",
      ]),
    );
  });
});
