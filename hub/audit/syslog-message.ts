import type { SealedEntry } from "../../shared/audit-chain.ts";

/** The facility 13 of syslog means the audit of a system. */
const FACILITY = 13;
const NOTICE = 5;
const WARNING = 4;

/** The values for the sender's fields in the header of a syslog message; each field holds visible ASCII, and has a largest length (RFC 5424, 6). */
export interface SyslogSender {
  readonly hostname: string;
  readonly pid: number;
}

const visible = (text: string, most: number): string => {
  const kept = text.replace(/[^\x21-\x7e]/g, "").slice(0, most);
  return kept === "" ? "-" : kept;
};

/** Returns an audit entry as a syslog message of RFC 5424, whose text is the JSON of the entry. */
export function syslogMessage(entry: SealedEntry, { hostname, pid }: SyslogSender): string {
  const priority = FACILITY * 8 + (entry.outcome === "done" ? NOTICE : WARNING);
  const head = [`<${priority}>1`, entry.occurred_at, visible(hostname, 255), "muster", String(pid)];
  return [...head, visible(entry.action, 32), "-", JSON.stringify(entry)].join(" ");
}

/** A message on a stream has its length in bytes in front of it, so that a line end inside the message is no end of the message (RFC 6587, 3.4.1). */
export const octetCounted = (message: string): string => `${Buffer.byteLength(message)} ${message}`;

/** The largest message that fits into one datagram with room for the headers of IP and UDP. */
export const MOST_DATAGRAM = 60_000;

/**
 * An audit entry that is too long for a syslog datagram is sent without its details. The verification of an exported audit entry without its details
 * shows that it is not the whole entry.
 */
export function datagramOf(entry: SealedEntry, sender: SyslogSender): string {
  const whole = syslogMessage(entry, sender);
  const bytes = Buffer.byteLength(whole);
  if (bytes <= MOST_DATAGRAM) return whole;
  return syslogMessage({ ...entry, details: { left_out_bytes: bytes } }, sender);
}
