/** The probes of hosts by the hub, at real servers. */
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Probe } from "../../../shared/probes.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { type ProbedServers, startProbedServers } from "../../../test/support/probed-servers.ts";
import { ownPlaces } from "../../outbound/own-places.ts";
import { HUB_NETWORK, type ProbeNetwork } from "./probe-address.ts";
import { probeHost } from "./probe-host.ts";

/** The hosts of these tests are on this machine, where no host of a fleet is. */
const HERE: ProbeNetwork = { ...HUB_NETWORK, isForbidden: () => false };
const OPEN = new AbortController().signal;

let servers: ProbedServers;
beforeAll(() => {
  servers = startProbedServers();
});
afterAll(() => servers.close());

/** Answers each request with a text, and again and again if it is an answer that lets another one follow. */
const answering = (text: string, again = false) =>
  servers.tcp((socket) => {
    const write = () => {
      while (socket.writable && socket.write(text) && again);
    };
    socket.once("data", () => {
      if (again) socket.on("drain", write);
      write();
    });
  });

const UPGRADE = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
const INTERIM = "HTTP/1.1 103 Early Hints\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

describe("a probe of a host", () => {
  const probe = (given: object, host: string | null = "127.0.0.1", network = HERE) =>
    probeHost({ host, probe: Probe.parse({ name: "x", timeout_seconds: 5, ...given }) }, network, OPEN);

  it.each([
    ["a banner of SSH 2.0", (s) => s.ssh(), "ssh", {}, "passed", /answered "SSH-2[.]0-OpenSSH_9[.]6p1 Ubuntu-3"[.]$/],
    ["a banner of SSH 1", (s) => s.ssh("SSH-1.5-x\r\n"), "ssh", {}, "WrongBanner", /"SSH-1[.]5-x", which is no/],
    ["a hostile banner", (s) => s.ssh(`\x1b[2J${"a".repeat(999)}`), "ssh", {}, "WrongBanner", /answered "", which/],
    ["a long banner", (s) => s.ssh("a".repeat(999)), "ssh", {}, "WrongBanner", /answered "a{60}", which/],
    ["a banner of SSH 1 and 2", (s) => s.ssh("SSH-1.99-x\r\n"), "ssh", {}, "passed", /answered "SSH-1[.]99-x"/],
    ["lines before the banner", (s) => s.ssh("Hello\r\n\r\nSSH-2.0-x\r\n"), "ssh", {}, "passed", /"SSH-2[.]0-x"/],
    ["too many lines before it", (s) => s.ssh("a\r\n".repeat(9_999)), "ssh", {}, "WrongBanner", /answered "a", which/],
    ["another greeting", (s) => s.ssh("220 mail\r\n"), "ssh", {}, "WrongBanner", /"220 mail", and no banner .* 5 s/],
    ["no banner", (s) => s.tcp((one) => one.end()), "ssh", {}, "ClosedEarly", /without an SSH banner/],
    ["silence", (s) => s.tcp(() => undefined), "ssh", {}, "TimedOut", /did not answer within 5 s/],
    ["nothing that listens", () => freePort(), "tcp", {}, "Refused", /refused the connection/],
    ["an open port", (s) => s.tcp(() => undefined), "tcp", {}, "passed", /accepted the connection/],
    ["HTTP, with a body that never ends", (s) => s.http(200), "http", {}, "passed", /with status 200/],
    ["a redirect", (s) => s.http(302, { location: "/x" }), "http", {}, "WrongStatus", /status 302, and not 200/],
    ["an expected redirect", (s) => s.http(302), "http", { expected_status: 302 }, "passed", /status 302/],
    ["another protocol", (s) => s.ssh(), "http", {}, "NoHttpAnswer", /no HTTP/],
    ["no answer to HTTP", (s) => s.tcp(() => undefined), "http", {}, "TimedOut", /did not answer within/],
    ["a change of the protocol", () => answering(UPGRADE), "http", {}, "WrongStatus", /status 101, and not 200/],
    [
      "interim answers for ever",
      () => answering(INTERIM.repeat(500), true),
      "http",
      { timeout_seconds: 10 },
      "NoHttpAnswer",
      /more than 8 interim/,
    ],
    ["a few interim answers", () => answering(`${INTERIM.repeat(8)}${OK}`), "http", {}, "passed", /with status 200/],
    ["a close in place of an answer", (s) => s.tcp((one) => one.end()), "http", {}, "ClosedEarly", /closed the connec/],
    ["a certificate of no CA", (s) => s.https(), "https", {}, "TlsFailed", /TLS connection .* failed/],
    ["any certificate, as asked", (s) => s.https(), "https", { verify_tls: false }, "passed", /with status 200/],
    ["clear text in place of TLS", (s) => s.http(200), "https", {}, "TlsFailed", /TLS connection .* failed/],
  ] satisfies [string, (s: ProbedServers) => Promise<number>, string, object, string, RegExp][])(
    "of a host with %s",
    async (_, start, kind, given, expected, saw) => {
      const outcome = await probe({ kind, port: await start(servers), ...given });
      expect("reason" in outcome ? outcome.reason : outcome.kind, outcome.saw).toBe(expected);
      expect(outcome.saw).toMatch(saw);
    },
  );

  it("sends the header Host and the path that the profile names, and never follows a redirect", async () => {
    const elsewhere = await servers.http(200);
    const port = await servers.http(301, { location: `http://127.0.0.1:${elsewhere}/` });
    const asked = servers.requests.length;
    await probe({ kind: "http", port, path: "/ready?a=b", host_header: "host.example:81" });
    const requests = servers.requests.slice(asked);
    expect(requests.map(({ url, headers }) => [url, headers.host])).toEqual([["/ready?a=b", "host.example:81"]]);
  });

  it.each([
    ...Object.values(networkInterfaces()).flatMap((all) => all?.map((one) => one.address) ?? []),
    "127.0.0.1",
    "127.9.9.9",
    "::1",
    "::ffff:127.0.0.1",
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "224.0.0.1",
    "ff02::1",
    "0.0.0.0",
    "64:ff9b::a9fe:a9fe",
  ])("never connects to %s", async (host) => {
    let connections = 0;
    const port = await servers.tcp(() => void connections++);
    expect(await probe({ kind: "tcp", port }, host, HUB_NETWORK)).toMatchObject({ reason: "AddressRefused" });
    expect(connections).toBe(0);
  });

  it("never connects to a place of the hub, at whatever port and behind whatever name", async () => {
    const leave = [ownPlaces.add("192.0.2.7", 8443), ownPlaces.add("hub.example", 443)];
    const port = await servers.tcp(() => undefined);
    const network = { ...HUB_NETWORK, resolve: async () => ["192.0.2.8"] };
    for (const host of ["192.0.2.7", "::ffff:192.0.2.7", "hub.example", "HUB.example", "localhost"])
      expect(await probe({ kind: "tcp", port }, host, network), host).toMatchObject({ reason: "AddressRefused" });
    for (const each of leave) each();
  });

  it("asks for the addresses of a name each time, and refuses all if one is forbidden", async () => {
    const port = await servers.tcp(() => undefined);
    const network = (...addresses: string[]): ProbeNetwork => ({ ...HUB_NETWORK, resolve: async () => addresses });
    const named = (of: ProbeNetwork) => probe({ kind: "tcp", port }, "host.example", of);
    expect(await named({ ...network("127.0.0.1"), isForbidden: () => false })).toMatchObject({ kind: "passed" });
    expect(await named(network("192.0.2.1", "169.254.169.254"))).toMatchObject({ reason: "AddressRefused" });
    expect(await named(network())).toMatchObject({ kind: "failed", reason: "NameNotResolved" });
    const failing = Object.assign(new Error("no answer"), { code: "ETIMEOUT" });
    expect(await named({ ...HUB_NETWORK, resolve: () => Promise.reject(failing) })).toMatchObject({
      kind: "not_tried",
      saw: expect.stringMatching(/DNS did not answer .*ETIMEOUT/),
    });
    expect(await probe({ kind: "tcp", port }, null)).toMatchObject({ kind: "unknown", reason: "NoAddress" });
  });

  it("ends at once when the hub stops, and says nothing about the host", async () => {
    const port = await servers.tcp(() => undefined);
    const probed = { host: "127.0.0.1", probe: Probe.parse({ name: "x", kind: "ssh", port }) };
    expect(await probeHost(probed, HERE, AbortSignal.abort())).toMatchObject({ kind: "not_tried" });
  });
});
