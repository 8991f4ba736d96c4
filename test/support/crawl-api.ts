import type { Pool } from "pg";
import { z } from "zod";

export interface ApiAnswer {
  readonly path: string;
  readonly status: number;
  readonly text: string;
}

/**
 * For each route of the hub's API, an SQL query that returns the ids for the route's path, with the site and the tenant of each object. The crawl of
 * the API fails if `IDS` has no entry for a route whose path contains ids. A webhook and an SKU belong to no site.
 */
const IDS: Readonly<Record<string, string>> = {
  "maas-sites": "select id, id as site from maas_sites",
  "maas-sites/profiles": "select site_id as parent, id, site_id as site from maas_site_profiles",
  "maas-sites/power-credential-overrides":
    "select site_id as parent, id, site_id as site from maas_power_credential_overrides",
  skus: "select id from skus",
  onboardings: "select onboarding_id as id, site_id as site from node_onboardings",
  "onboarding-batches": "select id, site_id as site from onboarding_batches where kind = 'onboarding'",
  "decommission-batches": "select id, site_id as site from onboarding_batches where kind = 'decommission'",
  decommissions: "select decommission_id as id, site_id as site from node_decommissions",
  operations: "select id, site_id as site from workflows",
  nodes: "select id, site_id as site from nodes",
  "external-attempts": "select id, site_id as site from external_attempts",
  instances: "select id, site_id as site, tenant from allocations where status <> 'ended'",
  allocations: "select id, site_id as site, tenant from allocations",
  "ssh-keys": "select id, sites[1] as site, tenant from ssh_keys",
  "ssh-key-groups": "select id, sites[1] as site, tenant from ssh_key_groups",
  repairs: "select id, site_id as site, repair_tenant as tenant from repair_cases",
  "sanitization-records":
    "select record_id as id, n.site_id as site, r.tenant from sanitization_records r left join nodes n on n.id = r.node_id",
  tasks: "select t.id, n.site_id as site from tasks t left join nodes n on n.id = t.node_id",
  tokens: "select id, sites[1] as site from api_tokens",
  approvals: "select id, site_id as site from approvals",
  webhooks: "select id from webhooks",
};
const Description = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });
const Page = z.object({ next_cursor: z.string().nullable() });

/** A path of a route with the site and the tenant of the object that the path names; null if the object belongs to none. */
export interface NamedPath {
  readonly path: string;
  readonly site: string | null;
  readonly tenant: string | null;
}

interface Found {
  readonly parent?: string;
  readonly id: string;
  readonly site?: string | null;
  readonly tenant?: string | null;
}

export async function pathsOf(route: string, pool: Pool): Promise<NamedPath[]> {
  const names = [...route.matchAll(/([a-z-]+)\/\{\w+\}/g)].map(([, name]) => name ?? "");
  if (names.length === 0) return [{ path: route, site: null, tenant: null }];
  const statement = IDS[names.join("/")];
  if (statement === undefined) throw new Error(`Nobody knows what the ids of ${route} are; say it in crawl-api.ts`);
  const { rows } = await pool.query<Found>(statement);
  return rows.map(({ parent, id, site = null, tenant = null }) => {
    const values = parent === undefined ? [id] : [parent, id];
    return { path: route.replace(/\{\w+\}/g, () => encodeURIComponent(values.shift() ?? "")), site, tenant };
  });
}

/**
 * Returns the hub's answers to all GET requests: for each row, each page of a list, the web page and the API description. The crawl requests no event
 * streams, because event streams never end.
 */
export async function crawlApi(url: string, token: string, pool: Pool): Promise<ApiAnswer[]> {
  const answers: ApiAnswer[] = [];
  const ask = async (path: string): Promise<ApiAnswer> => {
    const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    const body = await response.text();
    answers.push({ path, status: response.status, text: `${headers}\n${body}` });
    return { path, status: response.status, text: body };
  };
  await ask("/");
  const description = Description.parse(JSON.parse((await ask("/api/v1/openapi.json")).text));
  const routes = Object.entries(description.paths).flatMap(([path, methods]) => ("get" in methods ? [path] : []));
  for (const route of routes.filter((one) => !one.endsWith("/stream")))
    for (const { path } of await pathsOf(route, pool)) {
      let cursor: string | null = null;
      do {
        const { text }: ApiAnswer = await ask(cursor === null ? path : `${path}?cursor=${encodeURIComponent(cursor)}`);
        const page = Page.safeParse(text.startsWith("{") ? JSON.parse(text) : null);
        cursor = page.success ? page.data.next_cursor : null;
      } while (cursor !== null);
    }
  return answers;
}
