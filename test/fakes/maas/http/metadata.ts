import type { IncomingMessage } from "node:http";
import { endDeployment } from "../engine/deploy.ts";
import { Refusal } from "../engine/refusal.ts";
import type { Region } from "../engine/region.ts";
import { vendorData } from "../host/vendor-data.ts";
import type { Machine } from "../state/model.ts";
import { STATUS } from "../state/statuses.ts";
import { authenticateMachine } from "./authenticate.ts";
import type { Reply } from "./call.ts";
import { parseBody, plain } from "./call.ts";

const ROOT = "/MAAS/metadata/2012-03-01/";

/** User data is stored as it came; canonical base64 is served decoded. */
function userDataBytes(machine: Machine): Buffer | null {
  if (machine.userData === null || machine.userData === "") return null;
  const decoded = Buffer.from(machine.userData, "base64");
  return decoded.toString("base64") === machine.userData ? decoded : Buffer.from(machine.userData);
}

function machineOf(region: Region, request: IncomingMessage): Machine {
  const systemId = authenticateMachine(region, request);
  if (systemId === null)
    throw new Refusal(401, "Authorization Error: Invalid API key.", "text/html; charset=utf-8", {
      "WWW-Authenticate": 'OAuth realm="OAuth"',
    });
  return region.machine(systemId);
}

async function signal(region: Region, machine: Machine, request: IncomingMessage, body: Buffer): Promise<Reply> {
  const { form } = await parseBody(request.headers["content-type"] ?? "", body);
  const status = form.required("status");
  if (!["OK", "WORKING", "FAILED", "TIMEDOUT", "INSTALLING", "TESTING", "APPLYING_NETCONF"].includes(status))
    throw new Refusal(400, `Unknown commissioning status: '${status}'`);
  // Only a deployed machine with the flag reports its hardware; the results move its clock.
  if (machine.status === STATUS.deployed && machine.enableHwSync) {
    machine.lastSync = region.now();
    region.count(machine.systemId, "sync");
    region.event(machine, "INFO", "Node hardware sync state change", `hardware sync reported ${status}`);
    region.changed();
  }
  return plain("OK");
}

/** What a booted machine asks for and reports, signed with its own token. */
export async function answerMetadata(region: Region, request: IncomingMessage, url: URL, body: Buffer): Promise<Reply> {
  const method = request.method ?? "GET";
  const machine = machineOf(region, request);
  const status = /^\/MAAS\/metadata\/status\/([^/]+)\/?$/.exec(url.pathname);
  if (status !== null) {
    if (status[1] !== machine.systemId) throw new Refusal(403, "");
    return plain("", 204);
  }
  const path = url.pathname.startsWith(ROOT) ? url.pathname.slice(ROOT.length).replace(/\/$/, "") : null;
  if (method === "POST" && path === "") {
    const op =
      url.searchParams.get("op") ?? (await parseBody(request.headers["content-type"] ?? "", body)).form.get("op");
    if (op === "signal") return signal(region, machine, request, body);
    throw new Refusal(400, `Unrecognised signature: method=POST op=${op ?? "None"}`);
  }
  switch (method === "GET" ? path : null) {
    case "meta-data":
      return plain(`instance-id: ${machine.systemId}\nlocal-hostname: ${machine.hostname}\n`);
    case "user-data": {
      const data = userDataBytes(machine);
      if (machine.status === STATUS.deploying) endDeployment(region, machine);
      return data === null ? plain("", 404) : { status: 200, body: data, contentType: "application/octet-stream" };
    }
    case "vendor-data":
      return {
        ...plain(vendorData(machine, `http://${request.headers.host ?? "127.0.0.1"}/MAAS`)),
        contentType: "text/plain; charset=utf-8",
      };
    case "maas-scripts":
      return { status: 200, body: Buffer.alloc(1024), contentType: "application/x-tar" };
    default:
      return plain("Not found", 404);
  }
}
