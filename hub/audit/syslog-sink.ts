import { createSocket } from "node:dgram";
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { connect } from "node:net";
import { hostname } from "node:os";
import { within } from "../timing/pause.ts";
import type { Sink } from "./export.ts";
import { datagramOf, octetCounted, type SyslogSender, syslogMessage } from "./syslog-message.ts";

/** A receiver of syslog: a stream socket of this machine, or an address in the network. */
export type SyslogTarget =
  | { readonly by: "unix"; readonly path: string }
  | { readonly by: "tcp" | "udp"; readonly host: string; readonly port: number };

interface Waits {
  /** The longest time for one part. */
  readonly deadlineMs: number;
  /** The time that the hub waits after it has sent a part to the syslog receiver, before it ends its side of the connection; see `sendStream`. */
  readonly momentMs: number;
}
const WAITS: Waits = { deadlineMs: 10_000, momentMs: 100 };
const SYSLOG_PORT = 514;

/** Reads the address of a syslog receiver, such as `unix:///run/log.sock`, `tcp://host:601` or `udp://host:514`; null if it is no such address. */
export function syslogTarget(text: string): SyslogTarget | null {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return null;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol === "unix:")
    return host === "" && url.pathname.length > 1 ? { by: "unix", path: url.pathname } : null;
  if ((url.protocol !== "tcp:" && url.protocol !== "udp:") || host === "" || url.pathname.length > 1) return null;
  return { by: url.protocol === "tcp:" ? "tcp" : "udp", host, port: url.port === "" ? SYSLOG_PORT : Number(url.port) };
}

/** Sends audit entries to a syslog receiver. */
export function openSyslog(target: SyslogTarget, waits = WAITS): Sink {
  const sender: SyslogSender = { hostname: hostname(), pid: process.pid };
  return {
    write: (entries) =>
      target.by === "udp"
        ? sendDatagrams(
            target,
            waits.deadlineMs,
            entries.map((entry) => datagramOf(entry, sender)),
          )
        : sendStream(target, waits, entries.map((entry) => octetCounted(syslogMessage(entry, sender))).join("")),
    close: async () => undefined,
  };
}

/**
 * Syslog acknowledges no message. The hub therefore sends each part of the audit entries to the syslog receiver on a connection of its own, and then
 * ends its side of the connection. A syslog receiver closes its side only after it has read everything; if the receiver closes it earlier,
 * `sendStream` fails. A syslog receiver that has too many connections closes a new one at once, maybe before the audit entries arrive. The hub
 * therefore waits a moment before it ends its side: a syslog receiver that closes the connection during this moment has not read the audit entries.
 */
function sendStream(
  target: Exclude<SyslogTarget, { readonly by: "udp" }>,
  { deadlineMs, momentMs }: Waits,
  messages: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const address = target.by === "unix" ? { path: target.path } : { host: target.host, port: target.port };
    const socket = connect({ ...address, allowHalfOpen: true });
    const fail = (what: string): void => void socket.destroy(new Error(`the receiver of syslog ${what}`));
    const deadline = setTimeout(() => fail("did not close the connection in time"), deadlineMs);
    let moment: NodeJS.Timeout | undefined;
    let hasRead = false;
    socket.on("end", () => {
      hasRead = socket.writableEnded;
      if (hasRead) socket.destroy();
      else fail("closed the connection before the hub had sent everything");
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(deadline);
      clearTimeout(moment);
      if (hasRead) resolve();
      else reject(new Error("the receiver of syslog cut the connection"));
    });
    socket.resume();
    socket.write(messages, () => {
      moment = setTimeout(() => socket.end(), momentMs);
    });
  });
}

async function sendDatagrams(
  { host, port }: { readonly host: string; readonly port: number },
  deadlineMs: number,
  datagrams: readonly string[],
): Promise<void> {
  const { address, family } = await addressOf(host, deadlineMs);
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  // A refused datagram causes an error of the UDP socket, at the latest when the hub sends the next datagram.
  const faults: Error[] = [];
  socket.on("error", (error) => faults.push(error));
  try {
    socket.connect(port, address);
    await once(socket, "connect");
    for (const datagram of datagrams) {
      await new Promise<void>((resolve, reject) => {
        socket.send(datagram, (error) => (error === null ? resolve() : reject(error)));
      });
      if (faults[0] !== undefined) throw faults[0];
    }
  } finally {
    socket.close();
  }
}

/**
 * The look-up of the receiver's address has the same deadline as the receiver, so that a name server that does not answer does not delay the export
 * for longer.
 */
async function addressOf(host: string, deadlineMs: number): Promise<LookupAddress> {
  const found = await within(deadlineMs, lookup(host));
  if (found === null) throw new Error(`no name server told the address of ${host} in time`);
  return found;
}
