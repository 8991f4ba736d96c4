import { readFileSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { Refusal } from "../engine/refusal.ts";
import type { Region } from "../engine/region.ts";
import { authenticate } from "./authenticate.ts";
import type { Call, Reply } from "./call.ts";
import { Fields, fromRefusal, parseBody, plain, readBody } from "./call.ts";
import type { Control } from "./control.ts";
import type { Fault, FaultBook } from "./faults.ts";
import { echoOf, faultReply } from "./faults.ts";
import { answerMetadata } from "./metadata.ts";
import { versionDocument } from "./operations/site.ts";
import type { Resource } from "./resources.ts";
import { RESOURCES } from "./resources.ts";

const API_ROOT = "/MAAS/api/2.0/";

export interface ServerParts {
  region: Region;
  faults: FaultBook;
  control: Control;
}

interface Target {
  resource: Resource;
  params: string[];
}

function findTarget(path: string): Target | null {
  for (const resource of RESOURCES) {
    const match = resource.path.exec(path);
    if (match !== null) return { resource, params: match.slice(1) };
  }
  return null;
}

function unrecognised(method: string, op: string | null): Refusal {
  return new Refusal(400, `Unrecognised signature: method=${method} op=${op ?? "None"}`);
}

/** A client of MAAS may write the name of an operation as `op-NAME` at the end of the path, or as `?op=NAME`. */
function splitOp(path: string, query: URLSearchParams): { path: string; op: string | null } {
  const match = /^(.*\/)op-([a-z_]+)$/.exec(path);
  if (match?.[1] !== undefined && match[2] !== undefined) return { path: match[1], op: match[2] };
  return { path, op: query.get("op") };
}

function dispatchKey(method: string, op: string | null): string {
  return op === null || op === "" ? method : `${method} ${op}`;
}

async function answerApi(region: Region, request: IncomingMessage, url: URL, body: Buffer): Promise<Reply> {
  const method = request.method ?? "GET";
  const { path, op: urlOp } = splitOp(url.pathname.slice(API_ROOT.length), url.searchParams);
  if (path === "version/") return { ...versionDocument(region.version), headers: { Vary: "Authorization" } };
  const target = findTarget(path);
  if (target === null)
    return { ...plain(`Unknown API endpoint: ${url.pathname}.`, 404), contentType: "text/plain; charset=utf-8" };
  const user = authenticate(region, request);
  if (user === null) {
    if (target.resource.unsignedIsUnrecognised) throw unrecognised(method, urlOp);
    return plain("Forbidden", 401);
  }
  const methods = [...new Set(Object.keys(target.resource.operations).map((key) => key.split(" ")[0] ?? ""))];
  if (!methods.includes(method))
    return { status: 405, body: "", contentType: "text/html; charset=utf-8", headers: { Allow: methods.join(", ") } };
  const { data, form } = await parseBody(request.headers["content-type"] ?? "", body);
  const op = urlOp ?? form.get("op");
  const handler = target.resource.operations[dispatchKey(method, op)];
  if (handler === undefined) throw unrecognised(method, op);
  const call: Call = {
    region,
    user,
    params: target.params.map(decodeURIComponent),
    query: new Fields(url.searchParams),
    data,
    form,
    url,
  };
  return handler(call);
}

/**
 * MAAS's reporting script, which the hardware-sync service of a deployed machine fetches. A host that the simulator plays in a folder does not need
 * MAAS's reporting script.
 */
const RUN_SCRIPTS = readFileSync(new URL("../host/maas-run-scripts.py", import.meta.url), "utf8");

async function answer(parts: ServerParts, request: IncomingMessage, url: URL, body: Buffer): Promise<Reply> {
  try {
    if (url.pathname.startsWith("/_sim/")) return await parts.control.answer(request, url, body);
    if (url.pathname === "/MAAS/maas-run-scripts") return plain(RUN_SCRIPTS);
    if (url.pathname.startsWith("/MAAS/metadata/")) return await answerMetadata(parts.region, request, url, body);
    if (url.pathname === "/MAAS/api/version/") return plain("2.0");
    if (url.pathname.startsWith("/MAAS/api/1.0/")) return plain("The 1.0 API is no longer available.", 410);
    if (url.pathname.startsWith(API_ROOT)) return await answerApi(parts.region, request, url, body);
    return plain(`Unknown path: ${url.pathname}.`, 404);
  } catch (error) {
    if (error instanceof Refusal) return fromRefusal(error);
    process.stderr.write(
      `${request.method ?? ""} ${url.pathname}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    return plain(error instanceof Error ? error.message : String(error), 500);
  }
}

function send(region: Region, response: ServerResponse, reply: Reply, truncated: boolean): void {
  const { body: whole } = reply;
  const inPieces = typeof whole !== "string" && !Buffer.isBuffer(whole);
  if (inPieces && !truncated) {
    response.writeHead(reply.status, { ...reply.headers, "Content-Type": reply.contentType });
    Readable.from(whole).pipe(response);
    return;
  }
  const body = Buffer.isBuffer(whole) ? whole : Buffer.from(inPieces ? [...whole].join("") : whole);
  const headers: Record<string, string> = {
    Date: new Date(region.toldTime()).toUTCString(),
    Vary: "Authorization, Cookie",
    ...reply.headers,
    "Content-Type": reply.contentType,
  };
  if (reply.status !== 204) headers["Content-Length"] = String(body.length);
  response.writeHead(reply.status, headers);
  if (!truncated) {
    response.end(reply.status === 204 ? undefined : body);
    return;
  }
  response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
}

/** Leaves a request without an answer, with an open connection, until the client gives up or the server closes. */
function hang(request: IncomingMessage): void {
  request.socket.setTimeout(0);
}

function takeFault(parts: ServerParts, method: string, url: URL): Fault | null {
  if (!url.pathname.startsWith(API_ROOT)) return null;
  const { path, op } = splitOp(url.pathname.slice(API_ROOT.length), url.searchParams);
  const { requests } = parts.region.state;
  const key = `${method} ${path.replace(/\/[a-z0-9]{6}\//, "/{id}/").replace(/\/\d+\//g, "/{n}/")}${op === null ? "" : `?op=${op}`}`;
  requests[key] = (requests[key] ?? 0) + 1;
  parts.region.changed();
  return parts.faults.take({ method, op, path });
}

async function replyOf(fault: Fault, request: IncomingMessage, body: Buffer): Promise<Reply | null> {
  if (fault.kind !== "echo_form") return faultReply(fault);
  return echoOf((await parseBody(request.headers["content-type"] ?? "", body)).form);
}

async function handle(parts: ServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://simulator.invalid");
  let body: Buffer;
  try {
    body = await readBody(request);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    send(parts.region, response, fromRefusal(error), false);
    return;
  }
  const fault = takeFault(parts, request.method ?? "GET", url);
  if (fault?.kind === "timeout_before") {
    hang(request);
    return;
  }
  if (fault?.kind === "held") await fault.held;
  const instead = fault === null ? null : await replyOf(fault, request, body);
  const reply = instead ?? (await answer(parts, request, url, body));
  // The simulator stores its state before it sends an answer, so that a kill right after the answer loses no change.
  parts.region.changed();
  parts.region.flush();
  if (fault?.kind === "timeout_after_accept") hang(request);
  else send(parts.region, response, reply, fault?.kind === "truncated_body");
}

export function createMaasServer(parts: ServerParts): Server {
  return createServer((request, response) => {
    handle(parts, request, response).catch((error: unknown) => {
      process.stderr.write(
        `${request.method ?? ""} ${request.url ?? ""}: ${error instanceof Error ? error.message : String(error)}\n`,
      );
      response.destroy();
    });
  });
}
