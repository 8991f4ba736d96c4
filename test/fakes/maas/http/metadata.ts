import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { endDeployment } from "../engine/deploy.ts";
import { keepBootAddress } from "../engine/links.ts";
import { Refusal } from "../engine/refusal.ts";
import type { Region } from "../engine/region.ts";
import { vendorData } from "../host/vendor-data.ts";
import type { Machine } from "../state/model.ts";
import { STATUS } from "../state/statuses.ts";
import { authenticateMachine } from "./authenticate.ts";
import type { Reply } from "./call.ts";
import { parseBody, plain } from "./call.ts";

const ROOT = "/MAAS/metadata/2012-03-01/";

/** Returns the machine's user data as bytes. MAAS stores the user data as sent, and decodes canonical base64 only for the host. */
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
  if (machine.status !== STATUS.deployed) return plain("OK");
  // Only a deployed machine with `enable_hw_sync` reports its hardware, and each report sets the time of the last sync.
  if (machine.enableHwSync) {
    machine.lastSync = region.now();
    keepBootAddress(machine);
    region.count(machine.systemId, "sync");
    region.event(machine, "INFO", "Node hardware sync state change", `hardware sync reported ${status}`);
  }
  // MAAS reads the signal `OK` as the end of a commissioning run, so hardware sync must never send `OK`.
  if (status === "OK") {
    region.setOwner(machine, null);
    region.changeStatus(machine, STATUS.ready);
  }
  region.changed();
  return plain("OK");
}

const BootReport = z.object({
  name: z.string(),
  description: z.string().default(""),
  event_type: z.enum(["start", "finish"]),
  result: z.string().optional(),
});

/** cloud-init reports each of its stages by a webhook, but MAAS writes an event only for a failed last stage. */
function reportOfBoot(region: Region, machine: Machine, body: Buffer): Reply {
  const report = BootReport.parse(JSON.parse(body.toString("utf8")));
  region.bootReports.push({ systemId: machine.systemId, name: report.name, result: report.result ?? null });
  if (report.name === "modules-final" && report.result === "FAIL") {
    region.event(machine, "ERROR", "Node post-installation failure", `'cloudinit' ${report.description}`);
    region.changed();
  }
  return plain("", 204);
}

const urlOf = (request: IncomingMessage): string => `http://${request.headers.host ?? "127.0.0.1"}/MAAS`;

/** Answers the requests of a booted machine, which are signed with the machine's own token. */
export async function answerMetadata(region: Region, request: IncomingMessage, url: URL, body: Buffer): Promise<Reply> {
  const method = request.method ?? "GET";
  const machine = machineOf(region, request);
  const status = /^\/MAAS\/metadata\/status\/([^/]+)\/?$/.exec(url.pathname);
  if (status !== null) {
    if (status[1] !== machine.systemId) throw new Refusal(403, "");
    return reportOfBoot(region, machine, body);
  }
  const path = url.pathname.startsWith(ROOT) ? url.pathname.slice(ROOT.length).replace(/\/$/, "") : null;
  if (method === "POST" && path === "") {
    const op =
      url.searchParams.get("op") ?? (await parseBody(request.headers["content-type"] ?? "", body)).form.get("op");
    if (op === "signal") return signal(region, machine, request, body);
    throw new Refusal(400, `Unrecognised signature: method=POST op=${op ?? "None"}`);
  }
  switch (method === "GET" ? path : null) {
    case "meta-data/instance-id":
      return plain(machine.systemId);
    case "meta-data/local-hostname":
      return plain(machine.hostname);
    case "meta-data/vendor-data":
      return plain(JSON.stringify({ "cloud-init": vendorData(machine, urlOf(request)) }));
    case "meta-data":
      return plain(`instance-id: ${machine.systemId}\nlocal-hostname: ${machine.hostname}\n`);
    case "user-data": {
      const data = userDataBytes(machine);
      if (machine.status === STATUS.deploying) endDeployment(region, machine);
      return data === null ? plain("", 404) : { status: 200, body: data, contentType: "application/octet-stream" };
    }
    case "vendor-data":
      return {
        ...plain(vendorData(machine, urlOf(request))),
        contentType: "text/plain; charset=utf-8",
      };
    case "maas-scripts":
      return { status: 200, body: Buffer.alloc(1024), contentType: "application/x-tar" };
    default:
      return plain("Not found", 404);
  }
}
