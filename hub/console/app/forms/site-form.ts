import type { Answer, Body } from "../api/schema.ts";
import { changedFields } from "./changed-fields.ts";
import { address, interfaceName, name, partsOf, present, systemAccount, webAddress, whole } from "./checks.ts";
import type { Errors } from "./form-errors.ts";

export interface SiteValues {
  readonly name: string;
  readonly region_code: string;
  readonly api_base_url: string;
  readonly pxe_iface: string;
  readonly pxe_vlan_vid: string;
  readonly node_pxe_iface: string;
  readonly deploy_user: string;
  readonly deploy_ssh_iface: string;
  readonly upstream_dns_servers: string;
}

/** The first values in the form for a new site: the defaults of the API, and empty fields for what only the operator knows. */
export const NEW_SITE: SiteValues = {
  name: "",
  region_code: "",
  api_base_url: "",
  pxe_iface: "",
  pxe_vlan_vid: "0",
  node_pxe_iface: "",
  deploy_user: "hpcadmin",
  deploy_ssh_iface: "eno8303",
  upstream_dns_servers: "1.1.1.1, 8.8.8.8",
};

function serversError(text: string): string | undefined {
  const servers = partsOf(text);
  if (servers.length === 0) return "is missing";
  if (servers.length > 8) return "has more than 8 addresses";
  const wrong = servers.find((one) => address(one) !== undefined);
  return wrong === undefined ? undefined : `${wrong} is no IPv4 or IPv6 address`;
}

export const checkSite = (values: SiteValues): Errors<SiteValues> => ({
  name: name(values.name),
  region_code: values.region_code.length > 64 ? "is longer than 64 characters" : present(values.region_code),
  api_base_url: webAddress(values.api_base_url),
  pxe_iface: interfaceName(values.pxe_iface),
  pxe_vlan_vid: whole(0, 4094)(values.pxe_vlan_vid),
  node_pxe_iface: interfaceName(values.node_pxe_iface),
  deploy_user: systemAccount(values.deploy_user),
  deploy_ssh_iface: interfaceName(values.deploy_ssh_iface),
  upstream_dns_servers: serversError(values.upstream_dns_servers),
});

/** The settings of a site as the API takes them, both for the creation and for the change of a site. */
const settingsOf = (values: SiteValues) => ({
  name: values.name.trim(),
  region_code: values.region_code.trim(),
  api_base_url: values.api_base_url.trim().replace(/\/+$/, ""),
  pxe_iface: values.pxe_iface.trim(),
  pxe_vlan_vid: Number(values.pxe_vlan_vid),
  node_pxe_iface: values.node_pxe_iface.trim(),
  deploy_user: values.deploy_user.trim(),
  deploy_ssh_iface: values.deploy_ssh_iface.trim(),
  upstream_dns_servers: partsOf(values.upstream_dns_servers),
});

export const siteBody = (values: SiteValues): Body<"createMaasSite"> => ({
  ...settingsOf(values),
  // The defaults of the API. A new site requests no repairs automatically, until its operators have a repair team and set `auto_repair`.
  auto_repair: false,
  repair_attempt_limit: 3,
});

type Site = Answer<"getMaasSite">;

/** The settings of an existing site that a person can change. */
export interface SiteChange extends SiteValues {
  readonly auto_repair: boolean;
  readonly repair_attempt_limit: string;
  readonly is_active: boolean;
  /** Empty if the site has no default profile; the API cannot remove the default profile of a site. */
  readonly default_profile_id: string;
}

export const changeOf = (site: Site): SiteChange => ({
  name: site.name,
  region_code: site.region_code,
  api_base_url: site.api_base_url,
  pxe_iface: site.pxe_iface,
  pxe_vlan_vid: String(site.pxe_vlan_vid),
  node_pxe_iface: site.node_pxe_iface,
  deploy_user: site.deploy_user,
  deploy_ssh_iface: site.deploy_ssh_iface,
  upstream_dns_servers: site.upstream_dns_servers.join(", "),
  auto_repair: site.auto_repair,
  repair_attempt_limit: String(site.repair_attempt_limit),
  is_active: site.status === "active",
  default_profile_id: site.default_profile_id ?? "",
});

export const checkChange = (values: SiteChange): Errors<SiteChange> => ({
  ...checkSite(values),
  repair_attempt_limit: whole(1, 20)(values.repair_attempt_limit),
});

/** Returns the request to change a site, with only the fields that differ from the site's present values. */
export const sitePatch = (site: Site, values: SiteChange): Body<"updateMaasSite"> =>
  changedFields(site, {
    ...settingsOf(values),
    auto_repair: values.auto_repair,
    repair_attempt_limit: Number(values.repair_attempt_limit),
    status: values.is_active ? "active" : "disabled",
    ...(values.default_profile_id === "" ? {} : { default_profile_id: values.default_profile_id }),
  });
