import { once } from "node:events";
import { createServer } from "node:https";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemorySecrets } from "../../test/support/memory-secrets.ts";
import { type CertificateAuthority, openCertificateAuthority } from "./certificate-authority.ts";
import { ServerCertificate } from "./server-certificate.ts";

const DAY_MS = 24 * 3_600_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);

let ca: CertificateAuthority;
let certificate: ServerCertificate;
let server: ReturnType<typeof createServer>;
beforeAll(async () => {
  ca = await openCertificateAuthority(new MemorySecrets());
  certificate = await ServerCertificate.issue(ca, ["localhost"]);
  server = createServer(certificate.context);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

async function open() {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const socket = connect({ host: "127.0.0.1", port: address.port, servername: "localhost", ca: ca.caPem });
  await once(socket, "secureConnect");
  return socket;
}

describe("the listener's certificate", () => {
  it("stays until a third of its life is left, and is then replaced without closing connections", async () => {
    expect(await certificate.renewWhenDue(server, inDays(19))).toBe(false);
    const before = await open();
    const { serialNumber } = before.getPeerCertificate();
    expect(await certificate.renewWhenDue(server, inDays(21))).toBe(true);
    const after = await open();
    expect(after.authorized).toBe(true);
    expect(after.getPeerCertificate().serialNumber).not.toBe(serialNumber);
    expect(before.destroyed).toBe(false);
    before.destroy();
    after.destroy();
  });

  it("counts its life from its renewal", async () => {
    expect(await certificate.renewWhenDue(server, inDays(19))).toBe(false);
  });
});
