import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect, isIP, type Socket } from "node:net";
import type { Probe } from "../../../shared/probes.ts";
import { addressOf, codeOf, type ProbeNetwork } from "./probe-address.ts";
import type { ProbeFailure, ProbeOutcome } from "./probe-verdict.ts";

/** RFC 4253 allows an SSH banner of at most 255 bytes, and other lines before the banner. */
const BANNER_BYTES = 255;
const BEFORE_BANNER_BYTES = 8 * 1024;
const SHOWN_BANNER = 60;
const HEADER_BYTES = 8 * 1024;
/** A server of SSH 2.0 that also speaks older protocols says 1.99 (RFC 4253, 5.1). */
const SSH_2 = /^SSH-(2\.0|1\.99)-/;
/** The largest number of interim HTTP answers (status below 200) that a host may send before the final answer. */
const MOST_INTERIM = 8;

interface Target {
  /** The node's address or name as the hub knows it; null if it knows none. */
  readonly host: string | null;
  readonly probe: Probe;
}

/** A connection that is about to be made, at an address that the hub has checked. */
interface Reach {
  readonly address: string;
  readonly signal: AbortSignal;
  /** The address and port for people. */
  readonly place: string;
  /** The first line that a host has said before it was silent. */
  readonly heard: { line: string };
}

/**
 * Makes one probe of a host, which ends within the probe's time-out or when `closing` aborts. The hub connects only to the node's own address,
 * follows no redirects and reads no body of an answer, so neither a host nor a tenant on it can lead the hub to another place or make it read for
 * long.
 */
export async function probeHost(
  { host, probe }: Target,
  network: ProbeNetwork,
  closing: AbortSignal,
): Promise<ProbeOutcome> {
  const timeoutMs = probe.timeout_seconds * 1000;
  const until = AbortSignal.timeout(timeoutMs);
  const addressed = await addressOf(host, network, timeoutMs, closing);
  if (addressed.kind !== "address") return addressed;
  const { address } = addressed;
  const place = `${isIP(address) === 6 ? `[${address}]` : address} port ${probe.port}`;
  const heard = { line: "" };
  const reach: Reach = { address, place, heard, signal: AbortSignal.any([until, closing]) };
  try {
    reach.signal.throwIfAborted();
    // A probe ends at its time limit whatever the host does, because an endless probe would take one of the hub's few places for probes.
    return await Promise.race([ask(probe, host ?? address, reach), whenAborted(reach.signal)]);
  } catch (error) {
    if (closing.aborted) return { kind: "not_tried", saw: "The hub stopped before the host answered." };
    if (!until.aborted) return toldError(error, place);
    const within = `within ${probe.timeout_seconds} s`;
    return heard.line === ""
      ? fail("TimedOut", `${place} did not answer ${within}.`)
      : fail("WrongBanner", `${place} answered ${printable(heard.line)}, and no banner of SSH 2.0 ${within}.`);
  }
}

/** The caller of `whenAborted` passes an AbortSignal that is not aborted yet. */
function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

const fail = (reason: ProbeFailure, saw: string): ProbeOutcome => ({ kind: "failed", reason, saw });

function ask(probe: Probe, name: string, reach: Reach): Promise<ProbeOutcome> {
  switch (probe.kind) {
    case "tcp":
      return askTcp(probe, reach);
    case "ssh":
      return askSsh(probe, reach);
    case "http":
    case "https":
      return askHttp(probe, name, reach);
  }
}

/** Opens a connection, and closes it after its use whatever happens. */
async function connected<T>(port: number, { address, signal }: Reach, use: (socket: Socket) => Promise<T>): Promise<T> {
  const socket = connect({ host: address, port, signal });
  // Without an `error` listener, a late error of the socket would end the hub's process.
  socket.on("error", () => undefined);
  try {
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return await use(socket);
  } finally {
    socket.destroy();
  }
}

const askTcp = ({ port }: Probe, reach: Reach): Promise<ProbeOutcome> =>
  connected(port, reach, async () => ({ kind: "passed", saw: `${reach.place} accepted the connection.` }));

const askSsh = ({ port }: Probe, reach: Reach): Promise<ProbeOutcome> =>
  connected(port, reach, async (socket) => {
    const said = await readBanner(socket, reach.heard);
    if (said.length === 0) return fail("ClosedEarly", `${reach.place} closed the connection without an SSH banner.`);
    return SSH_2.test(said)
      ? { kind: "passed", saw: `${reach.place} answered ${printable(said)}.` }
      : fail("WrongBanner", `${reach.place} answered ${printable(said)}, which is no banner of SSH 2.0.`);
  });

/**
 * Reads to the end of the SSH banner, or at most as many bytes as a server may send before its banner. If the host sends no SSH banner, `readBanner`
 * returns the first line that the host sent.
 */
async function readBanner(socket: Socket, heard: Reach["heard"]): Promise<string> {
  let read = "";
  for await (const part of socket as AsyncIterable<Buffer>) {
    read += part.toString("latin1", 0, BEFORE_BANNER_BYTES);
    const lines = read.split("\n");
    heard.line = lines[0]?.slice(0, BANNER_BYTES) ?? "";
    const unfinished = lines.pop() ?? "";
    const banner = lines.find((line) => line.startsWith("SSH-"));
    if (banner !== undefined) return banner.slice(0, BANNER_BYTES);
    if (unfinished.length >= BANNER_BYTES || read.length >= BEFORE_BANNER_BYTES) break;
  }
  return read.split("\n", 1)[0]?.slice(0, BANNER_BYTES) ?? "";
}

/** The beginning of what a host said, as far as it is printable ASCII, so that no host writes control characters into a message. */
const printable = (text: string): string =>
  JSON.stringify(/^[\x20-\x7e]*/.exec(text)?.[0].slice(0, SHOWN_BANNER) ?? "");

type HttpProbe = Extract<Probe, { kind: "http" | "https" }>;

function askHttp(probe: HttpProbe, name: string, reach: Reach): Promise<ProbeOutcome> {
  const { port, path, expected_status: expected, host_header: given } = probe;
  const secure = probe.kind === "https";
  const header = given ?? `${isIP(name) === 6 ? `[${name}]` : name}:${port}`;
  const serverName = given?.replace(/:\d+$/, "") ?? name;
  const options = {
    host: reach.address,
    port,
    path,
    method: "GET",
    agent: false,
    signal: reach.signal,
    maxHeaderSize: HEADER_BYTES,
    headers: { host: header, "user-agent": "muster-hub", connection: "close" },
    ...(probe.kind === "https"
      ? { rejectUnauthorized: probe.verify_tls, servername: isIP(serverName) === 0 ? serverName : "" }
      : {}),
  };
  const told = (status = 0): ProbeOutcome =>
    status === expected
      ? { kind: "passed", saw: `${reach.place} answered with status ${status}.` }
      : fail("WrongStatus", `${reach.place} answered with status ${status}, and not ${expected}.`);
  return new Promise((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)(options, (response) => {
      // A probe compares only the status of the HTTP answer, so the hub reads nothing of the body.
      response.on("error", () => undefined).destroy();
      resolve(told(response.statusCode));
    });
    // Without a listener for `upgrade`, Node.js closes the connection at the HTTP status 101, and the probe learns nothing of it.
    request.once("upgrade", ({ statusCode }, socket) => {
      socket.destroy();
      resolve(told(statusCode));
    });
    let interim = 0;
    request.on("information", () => {
      interim += 1;
      if (interim <= MOST_INTERIM) return;
      resolve(fail("NoHttpAnswer", `${reach.place} answered with more than ${MOST_INTERIM} interim answers.`));
      request.destroy();
    });
    request.once("close", () => reject(Object.assign(new Error("closed"), { code: "ECONNRESET" })));
    request.on("error", reject).end();
  });
}

/** Error codes of the hub's own machine, which say nothing about the probed host. */
const OF_THE_HUB = new Set([
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
  "EADDRNOTAVAIL",
  "EACCES",
  "EPERM",
  "ENETUNREACH",
  "ENETDOWN",
]);
const REASONS: Readonly<Record<string, readonly [ProbeFailure, string]>> = {
  ECONNREFUSED: ["Refused", "refused the connection"],
  ECONNRESET: ["ClosedEarly", "closed the connection before it answered"],
  EPIPE: ["ClosedEarly", "closed the connection before it answered"],
  ETIMEDOUT: ["TimedOut", "did not answer"],
};

function toldError(error: unknown, place: string): ProbeOutcome {
  const code = codeOf(error);
  if (OF_THE_HUB.has(code)) return { kind: "not_tried", saw: `The hub could not open a connection (${code}).` };
  const known = REASONS[code];
  if (known !== undefined) return fail(known[0], `${place} ${known[1]}.`);
  if (code.startsWith("HPE_")) return fail("NoHttpAnswer", `${place} answered something that is no HTTP (${code}).`);
  if (/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_|SELF_|DEPTH_|ERR_OSSL|EPROTO)|_CERT_|^HOSTNAME_MISMATCH$/.test(code))
    return fail("TlsFailed", `The TLS connection to ${place} failed (${code}).`);
  return fail("Unreachable", `${place} could not be reached (${code}).`);
}
