import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export const REDFISH_USER = "root";
export const REDFISH_PASS = "calvin-and-hobbes";

/**
 * A simulated BMC of one host, which speaks Redfish over real HTTPS. A boot override of the simulated BMC holds for one boot only, as in a real BMC.
 */
export interface RedfishBmc {
  readonly port: number;
  /** The modifying requests that clients sent to the simulated BMC, and the refused logins, in order of arrival. */
  readonly calls: string[];
  power: "On" | "Off" | "PoweringOn" | "PoweringOff";
  /** The boot device that overrode the host's boot order when the host was last switched on. */
  bootedFrom: string | null;
  systems: number;
  /** The status and body with which the simulated BMC answers every authorized request, or null for correct answers. */
  fault: { readonly status: number; readonly body: string } | null;
  onBoot: ((from: string) => void) | null;
  close(): Promise<void>;
}

const SYSTEM = "/redfish/v1/Systems/1";

export async function startRedfishBmc(tls: Pick<ServerOptions, "key" | "cert">): Promise<RedfishBmc> {
  let override = "None";
  let etag = 1;
  const expected = `Basic ${Buffer.from(`${REDFISH_USER}:${REDFISH_PASS}`).toString("base64")}`;
  const reset = (type: string): number => {
    if (type === "ForceOff") bmc.power = "Off";
    else if (type === "On" && bmc.power === "Off") {
      bmc.power = "On";
      bmc.bootedFrom = override;
      bmc.onBoot?.(override);
      override = "None";
    } else return 400;
    return 204;
  };
  const change = (method: string, path: string, body: string, ifMatch: string | undefined): number => {
    bmc.calls.push(`${method} ${path} ${body}`);
    const asked = JSON.parse(body) as { ResetType?: string; Boot?: Record<string, string> };
    if (method === "POST" && path === `${SYSTEM}/Actions/ComputerSystem.Reset`) return reset(asked.ResetType ?? "");
    if (method !== "PATCH" || path !== SYSTEM) return 404;
    if (ifMatch !== `W/"${etag}"`) return 412;
    etag += 1;
    if (asked.Boot?.["BootSourceOverrideEnabled"] !== "Once") return 400;
    override = asked.Boot["BootSourceOverrideTarget"] ?? "None";
    return 200;
  };
  const shown = (path: string): unknown => {
    const members = Array.from({ length: bmc.systems }, (_, at) => ({ "@odata.id": `/redfish/v1/Systems/${at + 1}` }));
    if (path === "/redfish/v1/Systems") return { Members: members };
    if (path !== SYSTEM) return null;
    const action = { target: `${SYSTEM}/Actions/ComputerSystem.Reset` };
    return {
      "@odata.etag": `W/"${etag}"`,
      PowerState: bmc.power,
      Boot: { BootSourceOverrideTarget: override },
      Actions: { "#ComputerSystem.Reset": action },
    };
  };
  const server = createServer(tls, async (request, response) => {
    const { method = "", url = "" } = request;
    const body = await text(request);
    const answer = (status: number, value: unknown): void =>
      void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (request.headers.authorization !== expected) {
      bmc.calls.push("login refused");
      return answer(401, { error: "who are you" });
    }
    if (bmc.fault !== null) return void response.writeHead(bmc.fault.status).end(bmc.fault.body);
    if (method === "GET") {
      const found = shown(url);
      return answer(found === null ? 404 : 200, found);
    }
    const status = change(method, url, body, request.headers["if-match"]);
    return answer(status, {});
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const bmc: RedfishBmc = {
    port: (server.address() as AddressInfo).port,
    calls: [],
    power: "On",
    bootedFrom: null,
    systems: 1,
    fault: null,
    onBoot: null,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return bmc;
}
