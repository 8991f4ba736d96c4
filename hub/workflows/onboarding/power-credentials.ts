import { sameAddress } from "../../maas/power-address.ts";

export interface PowerOverride {
  readonly selectorType: "hostname" | "ipmi_ip" | "pxe_mac";
  readonly selectorValue: string;
  readonly vaultPath: string;
  readonly status: "active" | "disabled";
}

/** The selectors of BMC logins, beginning with the most precise selector (lifecycle 3.2.1). */
const ORDER = ["pxe_mac", "ipmi_ip", "hostname"] as const;

export interface ChosenCredentials {
  readonly selector: (typeof ORDER)[number] | "default";
  readonly path: string;
}

/**
 * Returns null if no BMC login for a single host matches the host and the site has no default login. The hub reads the secret of a BMC login only
 * when the hub uses the login.
 */
export function choosePowerCredentials(
  overrides: readonly PowerOverride[],
  host: { readonly pxeMac: string | null; readonly ipmiIp: string; readonly hostname: string },
  defaultPath: string | null,
): ChosenCredentials | null {
  const values = { pxe_mac: host.pxeMac, ipmi_ip: host.ipmiIp, hostname: host.hostname };
  for (const selector of ORDER) {
    const value = values[selector];
    if (value === null) continue;
    const match = overrides.find(
      (row) => row.status === "active" && row.selectorType === selector && sameAddress(row.selectorValue, value),
    );
    if (match !== undefined) return { selector, path: match.vaultPath };
  }
  return defaultPath === null ? null : { selector: "default", path: defaultPath };
}
