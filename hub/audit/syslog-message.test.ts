import { describe, expect, it } from "vitest";
import { AUDIT_FORMAT, GENESIS, type SealedEntry } from "../../shared/audit-chain.ts";
import { datagramOf, MOST_DATAGRAM, octetCounted, syslogMessage } from "./syslog-message.ts";
import { syslogTarget } from "./syslog-sink.ts";

const entry: SealedEntry = {
  format: AUDIT_FORMAT,
  sequence: 7,
  occurred_at: "2026-11-27T13:00:00.123456Z",
  actor: "ann",
  via: "token",
  role: "admin",
  address: null,
  request_id: null,
  action: "a very long action that has spaces",
  target: "nodes/1",
  site_id: null,
  outcome: "done",
  error_code: null,
  reason: "é\n2",
  details: {},
  content_sha256: GENESIS,
  previous_sha256: GENESIS,
  entry_sha256: GENESIS,
};
const sender = { hostname: "hub 1\n", pid: 42 };

describe("a syslog message", () => {
  it("has the header of RFC 5424 and the JSON of the entry, in one line", () => {
    const message = syslogMessage(entry, sender);
    const head = "<109>1 2026-11-27T13:00:00.123456Z hub1 muster 42 averylongactionthathasspaces - ";
    expect(message.slice(0, head.length)).toBe(head);
    expect(JSON.parse(message.slice(head.length))).toEqual(entry);
    expect(message).not.toContain("\n");
    expect(syslogMessage({ ...entry, outcome: "refused", action: "" }, { hostname: "", pid: 1 })).toMatch(
      /^<108>1 \S+ - muster 1 - - \{/,
    );
  });

  it("has its length in bytes in front of it on a stream", () => {
    expect(octetCounted("aé")).toBe("3 aé");
  });

  it("leaves out details that no datagram can hold", () => {
    const large = { ...entry, details: { text: "x".repeat(MOST_DATAGRAM) } };
    const sent = datagramOf(large, sender);
    expect(Buffer.byteLength(sent)).toBeLessThan(MOST_DATAGRAM);
    expect(sent).toContain('"details":{"left_out_bytes":');
    expect(datagramOf(entry, sender)).toBe(syslogMessage(entry, sender));
  });
});

it.each([
  ["unix:///run/log.sock", { by: "unix", path: "/run/log.sock" }],
  ["tcp://log.example:601", { by: "tcp", host: "log.example", port: 601 }],
  ["udp://[2001:db8::1]", { by: "udp", host: "2001:db8::1", port: 514 }],
  ["unix://", null],
  ["unix://host/path", null],
  ["tcp://user:pw@log.example", null],
  ["tcp://:pw@log.example", null],
  ["tcp://log.example/path", null],
  ["tcp://", null],
  ["https://log.example", null],
  ["log.example", null],
])("reads %s as a receiver of syslog", (text, target) => {
  expect(syslogTarget(text)).toEqual(target);
});
