import { ipmiBmc } from "./ipmi.ts";
import type { OpenBmc } from "./port.ts";
import { redfishBmc } from "./redfish.ts";

interface BmcOptions {
  readonly caFile: string | null;
  /** The ports of BMCs, which differ from the standard ports only in tests. */
  readonly ports?: { readonly ipmi: number; readonly redfish: number };
}

const PORTS = { ipmi: 623, redfish: 443 } as const;

export const openBmc =
  ({ caFile, ports = PORTS }: BmcOptions): OpenBmc =>
  (login, signal) =>
    login.driver === "redfish"
      ? redfishBmc(login, { port: ports.redfish, signal, caFile })
      : ipmiBmc(login, { port: ports.ipmi, signal });
