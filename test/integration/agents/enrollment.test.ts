import { webcrypto, X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { and, eq, isNull, sql } from "../../../hub/db/orm.ts";
import { revokeCertificates } from "../../../hub/db/queries/node-certificates.ts";
import { enrollmentTokens, nodeCertificates, nodeEvents, nodes } from "../../../hub/db/schema/index.ts";
import { KEY_ALGORITHM, SIGNING_ALGORITHM, x509 } from "../../../hub/gateway/x509.ts";
import { EnrollResponse, nodeUri } from "../../../shared/api/enroll.ts";
import { API_ERRORS, type ApiErrorCode, Problem } from "../../../shared/api/errors.ts";
import { type Answer, GatewayRig, makeKey } from "../../support/gateway-rig.ts";
import { until } from "../../support/until.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.stop());

async function expectRefused(code: ApiErrorCode, ask: () => Promise<Answer>): Promise<Problem> {
  const before = await rig.snapshot();
  const answer = await ask();
  expect(answer).toMatchObject({ status: API_ERRORS[code].status, type: "application/problem+json", code });
  expect(await rig.snapshot()).toEqual(before);
  return Problem.parse(answer.json);
}

async function freshRequest(more: { ttlSeconds?: number; boundMacs?: string[] } = {}) {
  const nodeId = await rig.addNode();
  const key = await makeKey();
  const request = await rig.enrollRequest(nodeId, await rig.issueToken(nodeId, more), key);
  return { nodeId, key, request };
}

type Names = { type: "url" | "dns"; value: string }[];
const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 2048 } as const;

async function csrOf(
  extensions: readonly Names[],
  kind: { name: string; namedCurve?: string } | typeof RSA = KEY_ALGORITHM,
): Promise<string> {
  const isRsa = kind.name === RSA.name;
  const algorithm = isRsa ? { ...RSA, publicExponent: new Uint8Array([1, 0, 1]) } : kind;
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as webcrypto.CryptoKeyPair;
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: "CN=node",
    keys,
    signingAlgorithm: isRsa ? RSA : SIGNING_ALGORITHM,
    extensions: extensions.map((names) => new x509.SubjectAlternativeNameExtension(names)),
  });
  return request.toString("pem");
}

describe("enrollment", () => {
  it("issues a certificate that names the node and is valid only for TLS clients", async () => {
    const { nodeId, request } = await freshRequest();
    const answer = await rig.enroll(request);
    expect(answer.status).toBe(200);
    const response = EnrollResponse.parse(answer.json);
    const certificate = new X509Certificate(response.certificate_pem);
    expect(certificate.subjectAltName).toBe(`URI:${nodeUri(nodeId)}`);
    expect(certificate.verify(new X509Certificate(rig.ca.caPem).publicKey)).toBe(true);
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
    expect(certificate.ca).toBe(false);
    const life = certificate.validToDate.getTime() - certificate.validFromDate.getTime();
    expect(life / 3_600_000).toBeCloseTo(24 + 5 / 60, 1);
    expect(response.task_signing_public_key).toBe(rig.signer.publicKey);
    const [node] = await rig.db.select().from(nodes).where(eq(nodes.id, nodeId));
    expect(node?.status).toBe("enrolling");
    const events = await rig.db.select().from(nodeEvents).where(eq(nodeEvents.nodeId, nodeId));
    expect(events.map((event) => event.type)).toEqual(["enrolled"]);
  });

  it("stores no token and no key in any row", async () => {
    const { request, key } = await freshRequest();
    await rig.enroll(request);
    const rows = JSON.stringify(await rig.snapshot());
    expect(rows).not.toContain(request.token);
    expect(rows).not.toContain(key.keyPem.split("\n")[1]);
  });

  it("answers the same key again, because the first answer may have been lost", async () => {
    const { request, nodeId } = await freshRequest();
    const first = EnrollResponse.parse((await rig.enroll(request)).json);
    const again = EnrollResponse.parse((await rig.enroll(request)).json);
    expect(again).toMatchObject({ node_id: nodeId, generation: first.generation });
    expect(again.certificate_pem).toBe(first.certificate_pem);
  });

  it("answers the same key again after the token has expired, because it was used in time", async () => {
    const { request, nodeId } = await freshRequest();
    expect((await rig.enroll(request)).status).toBe(200);
    await rig.db
      .update(enrollmentTokens)
      .set({ expiresAt: new Date(Date.now() - 1_000) })
      .where(eq(enrollmentTokens.nodeId, nodeId));
    expect((await rig.enroll(request)).status).toBe(200);
  });

  it("answers one host that asks twice at once", async () => {
    const { request } = await freshRequest();
    const answers = await Promise.all([rig.enroll(request), rig.enroll(request)]);
    expect(answers.map((answer) => answer.status)).toEqual([200, 200]);
  });

  it("accepts exactly one of several hosts that use one token at once", async () => {
    for (let round = 0; round < 5; round += 1) {
      const { nodeId, request } = await freshRequest();
      const rivals = await Promise.all(
        Array.from({ length: 4 }, async () => ({ ...request, csr_pem: await (await makeKey()).csr(nodeUri(nodeId)) })),
      );
      const answers = await Promise.all(rivals.map((rival) => rig.enroll(rival)));
      expect(answers.map((answer) => answer.code ?? "won").sort()).toEqual([
        "token_used",
        "token_used",
        "token_used",
        "won",
      ]);
      const kept = await rig.db.select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, nodeId));
      expect(kept).toHaveLength(1);
    }
  });

  it("accepts a host with one of the MAC addresses that the token is bound to", async () => {
    const { request } = await freshRequest({ boundMacs: ["02:00:00:00:00:99", "02:00:00:00:00:01"] });
    expect((await rig.enroll(request)).status).toBe(200);
  });
});

describe("enrollment refuses and changes nothing for", () => {
  it("an unknown token", async () => {
    const { request } = await freshRequest();
    await expectRefused("token_unknown", () => rig.enroll({ ...request, token: "x".repeat(43) }));
  });

  it("a token that a newer token has replaced", async () => {
    const { nodeId, request } = await freshRequest();
    await rig.issueToken(nodeId);
    await expectRefused("token_unknown", () => rig.enroll(request));
  });

  it("an expired token", async () => {
    const { nodeId, request } = await freshRequest();
    await rig.db
      .update(enrollmentTokens)
      .set({ expiresAt: new Date(Date.now() - 1_000) })
      .where(eq(enrollmentTokens.nodeId, nodeId));
    await expectRefused("token_expired", () => rig.enroll(request));
  });

  it("a used token with another key", async () => {
    const { nodeId, request } = await freshRequest();
    await rig.enroll(request);
    const other = await (await makeKey()).csr(nodeUri(nodeId));
    await expectRefused("token_used", () => rig.enroll({ ...request, csr_pem: other }));
  });

  it("a used token and its key after the node was provisioned anew", async () => {
    const { nodeId, request } = await freshRequest();
    await rig.enroll(request);
    await rig.issueToken(nodeId, { generation: 2 });
    await expectRefused("token_unknown", () => rig.enroll(request));
  });

  it("a used token and its key after the certificate was revoked", async () => {
    const { nodeId, request } = await freshRequest();
    await rig.enroll(request);
    await rig.inTx((tx) => revokeCertificates(tx, nodeId, "all", "stolen"));
    await expectRefused("certificate_rejected", () => rig.enroll(request));
  });

  it("a token of another node", async () => {
    const mine = await freshRequest();
    const other = await freshRequest();
    await expectRefused("token_of_another_node", () => rig.enroll({ ...mine.request, token: other.request.token }));
  });

  it("a host with none of the MAC addresses that the token is bound to", async () => {
    const { request } = await freshRequest({ boundMacs: ["02:00:00:00:00:99"] });
    await expectRefused("token_of_another_node", () => rig.enroll(request));
  });

  it("a certificate request for another name", async () => {
    const { request, key } = await freshRequest();
    const other = await rig.addNode();
    const csr_pem = await key.csr(nodeUri(other));
    await expectRefused("csr_name_mismatch", () => rig.enroll({ ...request, csr_pem }));
  });

  it("a certificate request that cannot be parsed", async () => {
    const { request } = await freshRequest();
    const csr_pem = `-----BEGIN CERTIFICATE REQUEST-----\n${"A".repeat(100)}\n-----END CERTIFICATE REQUEST-----`;
    await expectRefused("csr_invalid", () => rig.enroll({ ...request, csr_pem }));
  });

  it("a certificate request with more names than the node's, or none", async () => {
    const { nodeId, request } = await freshRequest();
    const own = { type: "url", value: nodeUri(nodeId) } as const;
    const other = { type: "url", value: nodeUri(await rig.addNode()) } as const;
    const host = { type: "dns", value: "hub.example" } as const;
    for (const extensions of [[[own, host]], [[own, other]], [[host]], [], [[own], [other]]]) {
      const csr_pem = await csrOf(extensions);
      await expectRefused("csr_name_mismatch", () => rig.enroll({ ...request, csr_pem }));
    }
  });

  it("a certificate request for a key of another kind", async () => {
    const { nodeId, request } = await freshRequest();
    const names: Names = [{ type: "url", value: nodeUri(nodeId) }];
    for (const kind of [RSA, { name: "ECDSA", namedCurve: "P-384" }]) {
      const csr_pem = await csrOf([names], kind);
      await expectRefused("csr_invalid", () => rig.enroll({ ...request, csr_pem }));
    }
  });

  it("a certificate request that its key did not sign", async () => {
    const { nodeId, request } = await freshRequest();
    const other = await rig.addNode();
    const [signed] = x509.PemConverter.decode(await (await makeKey()).csr(nodeUri(other)));
    const der = Buffer.from(signed ?? new ArrayBuffer(0));
    const at = der.indexOf(nodeUri(other));
    der.write(nodeUri(nodeId), at, "latin1");
    const csr_pem = x509.PemConverter.encode(der, "CERTIFICATE REQUEST");
    await expectRefused("csr_invalid", () => rig.enroll({ ...request, csr_pem }));
  });

  it("a node that was deleted", async () => {
    const { nodeId, request } = await freshRequest();
    await rig.db.update(nodes).set({ status: "deleted" }).where(eq(nodes.id, nodeId));
    await expectRefused("token_unknown", () => rig.enroll(request));
  });

  it("another protocol version", async () => {
    const { request } = await freshRequest();
    await expectRefused("protocol_unsupported", () => rig.enroll({ ...request, protocol_version: 99 }));
  });

  it("a missing, wrong or unknown field, which the answer names", async () => {
    const { request } = await freshRequest();
    const { boot_id: _left, ...without } = request;
    const missing = await expectRefused("validation_failed", () => rig.enroll(without));
    expect(missing.errors).toEqual([expect.objectContaining({ pointer: "/boot_id" })]);
    const unknown = await expectRefused("validation_failed", () => rig.enroll({ ...request, admin: true }));
    expect(unknown.detail).toContain("admin");
    await expectRefused("validation_failed", () => rig.enroll({ ...request, node_id: "../../etc" }));
  });

  it("a body that is not JSON or is nested too deeply", async () => {
    const path = "/internal/v1/nodes/enroll";
    await expectRefused("malformed_json", () => rig.ask("POST", path, { raw: "{" }));
    await expectRefused("validation_failed", () =>
      rig.ask("POST", path, { raw: "[".repeat(8_000) + "]".repeat(8_000) }),
    );
  });

  it("a body larger than the largest valid enrollment, with or without a declared length", async () => {
    const path = "/internal/v1/nodes/enroll";
    const { request } = await freshRequest();
    const macs = Array.from({ length: 256 }, (_, n) => `02:00:00:00:00:${n.toString(16).padStart(2, "0")}`);
    const largest = { ...request, csr_pem: request.csr_pem.padEnd(8_192), hostname: "h".repeat(253), macs };
    expect((await rig.enroll(largest)).status).toBe(200);
    const raw = `{"a":"\\u0000","b":[${"0,".repeat(8_200)}0]}`;
    await expectRefused("body_too_large", () => rig.ask("POST", path, { raw }));
    await expectRefused("body_too_large", () =>
      rig.ask("POST", path, { raw, headers: { "transfer-encoding": "chunked" } }),
    );
    expect(Buffer.byteLength(raw)).toBeLessThan(20_000);
  });

  it("a whole number that no column holds", async () => {
    const { request } = await freshRequest();
    await expectRefused("validation_failed", () => rig.enroll({ ...request, protocol_version: 2 ** 31 }));
  });

  it("an unknown path", async () => {
    await expectRefused("not_found", () => rig.ask("GET", "/internal/v1/nothing"));
  });
});

describe("renewal", () => {
  it("issues a new certificate to the holder of a valid one, also for a new key", async () => {
    const identity = await rig.enrolled();
    const csr_pem = await (await makeKey()).csr(nodeUri(identity.nodeId));
    const path = `/internal/v1/nodes/${identity.nodeId}/certificate`;
    const answer = await rig.ask("POST", path, { as: identity, body: { csr_pem } });
    expect(EnrollResponse.parse(answer.json).generation).toBe(1);
    const kept = await rig.db.select().from(nodeCertificates).where(eq(nodeCertificates.nodeId, identity.nodeId));
    expect(kept).toHaveLength(2);
  });

  it("is refused without a certificate, and with one of another node, revoked, or of an earlier generation", async () => {
    const [identity, other] = [await rig.enrolled(), await rig.enrolled()];
    const csr_pem = await (await makeKey()).csr(nodeUri(identity.nodeId));
    const path = `/internal/v1/nodes/${identity.nodeId}/certificate`;
    await expectRefused("certificate_required", () => rig.ask("POST", path, { body: { csr_pem } }));
    // The hub checks the client certificate before it reads a request's body, so that it reads only bodies of the node itself.
    const large = { csr_pem: "x".repeat(20_000) };
    await expectRefused("certificate_required", () => rig.ask("POST", path, { body: large }));
    await expectRefused("body_too_large", () => rig.ask("POST", path, { as: identity, body: large }));
    await expectRefused("certificate_rejected", () => rig.ask("POST", path, { as: other, body: { csr_pem } }));
    const foreign = await (await GatewayRig.start()).stopAfter(async (rival) => rival.enrolled());
    await expectRefused("certificate_rejected", () => rig.ask("POST", path, { as: foreign, body: { csr_pem } }));

    await rig.issueToken(identity.nodeId, { generation: 2 });
    await expectRefused("certificate_rejected", () => rig.ask("POST", path, { as: identity, body: { csr_pem } }));

    await rig.inTx((tx) => revokeCertificates(tx, other.nodeId, "all", "lost"));
    const otherPath = `/internal/v1/nodes/${other.nodeId}/certificate`;
    const body = { csr_pem: await (await makeKey()).csr(nodeUri(other.nodeId)) };
    const refused = await expectRefused("certificate_rejected", () => rig.ask("POST", otherPath, { as: other, body }));
    expect(refused.detail).toContain("lost");
  });

  it("is refused when the certificate is revoked after the check and before the new one is stored", async () => {
    const identity = await rig.enrolled();
    const path = `/internal/v1/nodes/${identity.nodeId}/certificate`;
    const body = { csr_pem: await (await makeKey()).csr(nodeUri(identity.nodeId)) };
    const asked = await rig.inTx(async (tx) => {
      await revokeCertificates(tx, identity.nodeId, "all", "stolen");
      const asking = rig.ask("POST", path, { as: identity, body });
      await until("the renewal waits for the node", async () => {
        const { rows } = await rig.db.execute(
          sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length > 0 ? true : undefined;
      });
      return { asking };
    });
    expect(await asked.asking).toMatchObject({ status: 403, code: "certificate_rejected" });
    const valid = await rig.db
      .select()
      .from(nodeCertificates)
      .where(and(eq(nodeCertificates.nodeId, identity.nodeId), isNull(nodeCertificates.revokedAt)));
    expect(valid).toEqual([]);
  });

  it("is refused for a request with another node's name, an invalid request, or an unknown field", async () => {
    const [identity, other] = [await rig.enrolled(), await rig.enrolled()];
    const ask = (body: unknown) => () =>
      rig.ask("POST", `/internal/v1/nodes/${identity.nodeId}/certificate`, { as: identity, body });
    const key = await makeKey();
    await expectRefused("csr_name_mismatch", ask({ csr_pem: await key.csr(nodeUri(other.nodeId)) }));
    await expectRefused("csr_invalid", ask({ csr_pem: "x".repeat(100) }));
    await expectRefused("validation_failed", ask({ csr_pem: await key.csr(nodeUri(identity.nodeId)), node_id: "x" }));
  });

  it("tells the holder of any certificate of a deleted node that the node was deleted", async () => {
    const identity = await rig.enrolled();
    const path = `/internal/v1/nodes/${identity.nodeId}/certificate`;
    const body = { csr_pem: await (await makeKey()).csr(nodeUri(identity.nodeId)) };
    const old = await rig.expired(identity, 8 * 24);
    await rig.inTx((tx) => revokeCertificates(tx, identity.nodeId, "all", "removed"));
    await rig.db.update(nodes).set({ status: "deleted" }).where(eq(nodes.id, identity.nodeId));
    await expectRefused("node_deleted", () => rig.ask("POST", path, { as: identity, body }));
    await expectRefused("node_deleted", () => rig.ask("POST", path, { as: old, body }));
  });

  it("is granted for a certificate that expired within a week, and not later", async () => {
    const identity = await rig.enrolled();
    const path = `/internal/v1/nodes/${identity.nodeId}/certificate`;
    const body = { csr_pem: await (await makeKey()).csr(nodeUri(identity.nodeId)) };
    const late = await rig.expired(identity, 6 * 24);
    expect((await rig.ask("POST", path, { as: late, body })).status).toBe(200);
    const tooLate = await rig.expired(identity, 8 * 24);
    await expectRefused("certificate_rejected", () => rig.ask("POST", path, { as: tooLate, body }));
  });

  it("is over for certificates of older generations once the newest has enrolled", async () => {
    const identity = await rig.enrolled();
    await rig.enrollNode(identity.nodeId, 2);
    const older = await rig.db
      .select()
      .from(nodeCertificates)
      .where(and(eq(nodeCertificates.nodeId, identity.nodeId), eq(nodeCertificates.generation, 1)));
    expect(older.map((row) => row.revokeReason)).toEqual(["the node was provisioned again"]);
  });
});
