import { expect, it } from "vitest";
import { changeOf, checkChange, checkSite, NEW_SITE, type SiteValues, siteBody, sitePatch } from "./site-form.ts";

const GOOD: SiteValues = {
  ...NEW_SITE,
  name: "dc1",
  region_code: "eu-1",
  api_base_url: "http://maas.example:5240/MAAS/",
  pxe_iface: "eth0",
  node_pxe_iface: "eno1",
};
const wrong = (changes: Partial<SiteValues>): string[] =>
  Object.entries(checkSite({ ...GOOD, ...changes })).flatMap(([name, error]) => (error === undefined ? [] : [name]));

it("takes the API's defaults, and asks for what only the operator knows", () => {
  expect(wrong({})).toEqual([]);
  expect(wrong(NEW_SITE)).toEqual(["name", "region_code", "api_base_url", "pxe_iface", "node_pxe_iface"]);
});

it("says which field is wrong", () => {
  expect(wrong({ pxe_vlan_vid: "4095" })).toEqual(["pxe_vlan_vid"]);
  expect(wrong({ upstream_dns_servers: "" })).toEqual(["upstream_dns_servers"]);
  expect(wrong({ upstream_dns_servers: "dns.example" })).toEqual(["upstream_dns_servers"]);
  expect(wrong({ upstream_dns_servers: Array(9).fill("1.1.1.1").join(",") })).toEqual(["upstream_dns_servers"]);
  expect(wrong({ region_code: "a".repeat(65) })).toEqual(["region_code"]);
});

it("sends numbers and lists, and no slash at the end of the address", () => {
  expect(siteBody(GOOD)).toMatchObject({
    api_base_url: "http://maas.example:5240/MAAS",
    pxe_vlan_vid: 0,
    upstream_dns_servers: ["1.1.1.1", "8.8.8.8"],
  });
});

it("changes only the fields of a site that differ, and takes no default profile away", () => {
  const site = {
    ...siteBody(GOOD),
    ...{ id: "s", status: "active" as const, default_profile_id: "p", created_at: "", updated_at: "" },
    credentials: { maas_token: true, power: true, deploy_password: true },
  };
  const values = changeOf(site);
  expect(sitePatch(site, values)).toEqual({});
  expect(sitePatch(site, { ...values, pxe_vlan_vid: "7", upstream_dns_servers: "9.9.9.9 1.1.1.1" })).toEqual({
    pxe_vlan_vid: 7,
    upstream_dns_servers: ["9.9.9.9", "1.1.1.1"],
  });
  expect(sitePatch(site, { ...values, is_active: false, auto_repair: true, default_profile_id: "" })).toEqual({
    status: "disabled",
    auto_repair: true,
  });
  expect(checkChange({ ...values, repair_attempt_limit: "21" }).repair_attempt_limit).toContain("from 1 to 20");
});
