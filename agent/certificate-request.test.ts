import { createPublicKey } from "node:crypto";
import { existsSync } from "node:fs";
import { execa } from "execa";
import { expect, it } from "vitest";
import { x509 } from "../hub/gateway/x509.ts";
import { nodeUri } from "../shared/api/enroll.ts";
import { newNodeId } from "../test/fakes/hub/orders.ts";
import { makeKey, makeRequest } from "./certificate-request.ts";

it("a request is verified by the hub's library, and contains only this node's name and its key", async () => {
  // Forty different keys produce signatures of all lengths that the DER encoding of ECDSA signatures can have.
  for (let round = 0; round < 40; round += 1) {
    const [key, nodeId] = [makeKey(), newNodeId()];
    const request = new x509.Pkcs10CertificateRequest(makeRequest(key, nodeId));
    expect(await request.verify()).toBe(true);
    expect(request.subject).toBe(`CN=${nodeId}`);
    expect(request.attributes.map((one) => one.type)).toEqual(["1.2.840.113549.1.9.14"]);
    const [names, ...others] = request.extensions;
    expect(others).toEqual([]);
    expect(names instanceof x509.SubjectAlternativeNameExtension && names.names.toJSON()).toEqual([
      { type: "url", value: nodeUri(nodeId) },
    ]);
    const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
    expect(Buffer.from(request.publicKey.rawData)).toEqual(publicKey);
  }
});

it.skipIf(!existsSync("/usr/bin/openssl"))("OpenSSL verifies a request (SKIPPED without openssl)", async () => {
  const nodeId = newNodeId();
  const input = makeRequest(makeKey(), nodeId);
  const { all } = await execa("openssl", ["req", "-verify", "-noout", "-text"], { input, all: true });
  expect(all).toContain("verify OK");
  expect(all).toMatch(new RegExp(`Subject: CN ?= ?${nodeId}\n`));
  expect(all).toContain(`URI:${nodeUri(nodeId)}\n`);
});

it("a changed byte breaks the request", async () => {
  const nodeId = newNodeId();
  const [bytes] = x509.PemConverter.decode(makeRequest(makeKey(), nodeId));
  const der = Buffer.from(bytes ?? new ArrayBuffer());
  const at = der.indexOf(nodeUri(nodeId));
  der.write("S", at);
  expect(await new x509.Pkcs10CertificateRequest(der).verify()).toBe(false);
});
