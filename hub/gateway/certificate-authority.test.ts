import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { MemorySecrets } from "../../test/support/memory-secrets.ts";
import { SECRET_PATHS } from "../secrets/port.ts";
import { openCertificateAuthority } from "./certificate-authority.ts";
import { openTaskSigner } from "./task-signer.ts";

describe("the certificate authority", () => {
  it("is created once and opened again, so a restarted hub has the same authority", async () => {
    const secrets = new MemorySecrets();
    const [first, again] = [await openCertificateAuthority(secrets), await openCertificateAuthority(secrets)];
    expect(again.caPem).toBe(first.caPem);
    const { certificatePem } = await first.issueServer(["localhost"]);
    expect(again.issued(new X509Certificate(certificatePem))).toBe(true);
    const stranger = await openCertificateAuthority(new MemorySecrets());
    expect(stranger.issued(new X509Certificate(certificatePem))).toBe(false);
  });

  it("is valid for ten years and signs no further authorities", async () => {
    const ca = new X509Certificate((await openCertificateAuthority(new MemorySecrets())).caPem);
    expect(ca.ca).toBe(true);
    const years = (ca.validToDate.getTime() - ca.validFromDate.getTime()) / (365 * 24 * 3_600_000);
    expect(years).toBeCloseTo(10, 1);
  });

  it("issues the listener's certificate for 30 days, for names, IPv4 and IPv6 addresses", async () => {
    const ca = await openCertificateAuthority(new MemorySecrets());
    const issued = await ca.issueServer(["hub.example", "10.0.0.1", "fd00::1"]);
    const certificate = new X509Certificate(issued.certificatePem);
    expect(certificate.checkHost("hub.example")).toBe("hub.example");
    expect(certificate.checkIP("10.0.0.1")).toBe("10.0.0.1");
    expect(certificate.checkIP("fd00::1")).toBe("fd00::1");
    expect(certificate.checkHost("other.example")).toBeUndefined();
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    expect((issued.notAfter.getTime() - Date.now()) / 86_400_000).toBeCloseTo(30, 1);
    expect(JSON.stringify(issued)).not.toContain("PRIVATE KEY");
  });

  it("gives serial numbers of 128 random bits", async () => {
    const ca = await openCertificateAuthority(new MemorySecrets());
    const serials = await Promise.all(
      Array.from({ length: 50 }, async () => new X509Certificate((await ca.issueServer(["a"])).certificatePem)),
    );
    expect(new Set(serials.map((one) => one.serialNumber)).size).toBe(50);
    for (const { serialNumber } of serials) expect(serialNumber.length).toBeGreaterThan(28);
  });

  it("is not created again if an incomplete secret is left, and neither is the order key", async () => {
    const secrets = new MemorySecrets();
    await secrets.write(SECRET_PATHS.certificateAuthority, { certificate_pem: "x" });
    await secrets.write(SECRET_PATHS.taskSigningKey, {});
    await expect(openCertificateAuthority(secrets)).rejects.toMatchObject({ code: "secret_corrupt" });
    await expect(openTaskSigner(secrets)).rejects.toMatchObject({ code: "secret_corrupt" });
  });
});

describe("the order key", () => {
  it("is created once, and agents get its raw 32 bytes", async () => {
    const secrets = new MemorySecrets();
    const { publicKey } = await openTaskSigner(secrets);
    expect((await openTaskSigner(secrets)).publicKey).toBe(publicKey);
    expect(Buffer.from(publicKey, "base64url")).toHaveLength(32);
  });
});
