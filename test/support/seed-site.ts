import { z } from "zod";
import { Profile } from "../../shared/api/profiles.ts";
import { RoceAssignment, RoceAssignmentWritten, Site, SiteProbe, Sku, type SkuCreate } from "../../shared/api/sites.ts";
import { bmcAddress, PXE_NIC, ROCE_NICS, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { DEPLOY_PASSWORD } from "./deploy-password.ts";
import type { HubApi } from "./hub-api.ts";

export interface SeededSite {
  readonly siteId: string;
  readonly profileId: string;
  readonly skuId: string;
}
export interface DemoHost {
  readonly hostname: string;
  readonly ipmi_ip: string;
}

const SITE = "demo-dc1";
export const SKU = "mi300x.192g.8gpu";

/** Returns hosts as an operator enters them: with a hostname and the address of the BMC, and without a record in MAAS. */
export const demoHosts = (count: number): DemoHost[] =>
  Array.from({ length: count }, (_, index) => ({ hostname: `c07u${41 + index}`, ipmi_ip: bmcAddress(index + 1) }));

const roceRows = (hosts: readonly DemoHost[]) =>
  hosts.flatMap((host, row) =>
    ROCE_NICS.map((nic, rail) => ({
      hostname: host.hostname,
      interface: nic,
      ipv4_cidr: `172.30.${rail}.${2 * row + 1}/31`,
    })),
  );

/** Creates a site, a SKU, credentials, a profile and RoCE rows through the hub's public API, and changes no existing object. */
export async function seedSite(
  api: HubApi,
  maas: { url: string; apiKey: string; bmcPassword?: string; deployPassword?: string },
  hosts: readonly DemoHost[],
  profileFields: Readonly<Record<string, unknown>> = {},
): Promise<SeededSite> {
  const site = await ensureSite(api, maas.url);
  const sites = `/api/v1/admin/maas-sites/${site.id}`;
  const description = "8 x MI300X, 192 GB each";
  await ensureSku(api, { id: SKU, description, gpu_vendor: "amd", gpu_model: "MI300X", gpus_total: 8 });
  if (!site.credentials.maas_token || !site.credentials.power || !site.credentials.deploy_password) {
    await api.call(z.unknown(), "POST", `${sites}/credentials`, {
      maas_token: maas.apiKey,
      power: { user: SITE_BMC_USER, pass: maas.bmcPassword ?? SITE_BMC_PASSWORD },
      deploy_password: maas.deployPassword ?? DEPLOY_PASSWORD,
    });
  }
  await api.call(SiteProbe, "POST", `${sites}/probe`);
  const profile = await ensureProfile(api, sites, site.id, profileFields);
  const rows = { items: roceRows(hosts) };
  const { failed } = await api.call(RoceAssignmentWritten, "POST", `${sites}/roce-assignments`, rows);
  if (failed > 0) throw new Error(`${failed} RoCE rows of the site were refused`);
  return { siteId: site.id, profileId: profile.id, skuId: SKU };
}

export async function ensureSku(api: HubApi, sku: z.input<typeof SkuCreate>): Promise<void> {
  if (!(await api.skus()).some(({ id }) => id === sku.id)) await api.call(Sku, "POST", "/api/v1/admin/skus", sku);
}

async function ensureSite(api: HubApi, maasUrl: string): Promise<Site> {
  const existing = (await api.sites()).find((site) => site.name === SITE);
  if (existing !== undefined) return existing;
  return api.call(Site, "POST", "/api/v1/admin/maas-sites", {
    name: SITE,
    region_code: "demo-1",
    api_base_url: maasUrl,
    pxe_iface: "ens19",
    pxe_vlan_vid: 310,
    node_pxe_iface: PXE_NIC,
  });
}

async function ensureProfile(
  api: HubApi,
  sites: string,
  siteId: string,
  fields: Readonly<Record<string, unknown>>,
): Promise<Profile> {
  const existing = (await api.profiles(siteId)).find((profile) => profile.name === "gpu");
  if (existing !== undefined) return existing;
  return api.call(Profile, "POST", `${sites}/profiles`, {
    name: "gpu",
    description: "GPU hosts of the demo",
    hardware_sync_interval_seconds: 900,
    batch_max_parallel: 8,
    ...fields,
  });
}

export const listRoce = (api: HubApi, siteId: string) =>
  api.all(RoceAssignment, `/api/v1/admin/maas-sites/${siteId}/roce-assignments`);
