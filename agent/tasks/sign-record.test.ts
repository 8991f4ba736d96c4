import { createHash, createPublicKey, generateKeyPairSync, verify, X509Certificate } from "node:crypto";
import fc from "fast-check";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openCertificateAuthority } from "../../hub/gateway/certificate-authority.ts";
import { nodeUri } from "../../shared/api/enroll.ts";
import type { TaskId } from "../../shared/ids.ts";
import { canonicalJson } from "../../shared/json.ts";
import { RECORD_FORMAT } from "../../shared/sanitization-format.ts";
import { signRecord as task } from "../../shared/tasks/sign-record.ts";
import { VERSION } from "../../shared/version.ts";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { newNodeId, newTaskId } from "../../test/fakes/hub/orders.ts";
import { makeKey } from "../../test/support/gateway-rig.ts";
import { MemorySecrets } from "../../test/support/memory-secrets.ts";
import { signRecord } from "./sign-record.ts";

const nodeId = newNodeId();
const hex = (text: string): string => createHash("sha256").update(text).digest("hex");
const known = { task_id: newTaskId(), epoch: 2, type: "node.validate_clean", result_sha256: hex("a result") };

let tls: { cert: string; key: string };
let agent: Record<string, string>;
beforeAll(async () => {
  const authority = await openCertificateAuthority(new MemorySecrets());
  const key = await makeKey();
  const signed = await authority.signNode(nodeId, await authority.checkRequest(await key.csr(nodeUri(nodeId)), nodeId));
  tls = { cert: signed.pem, key: key.keyPem };
  agent = {
    version: VERSION,
    boot_id: "5f0c1a52-0000-4000-8000-000000000001",
    certificate_serial: signed.serial,
    public_key_sha256: signed.publicKeySha256,
  };
});

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

const record = (more: object = {}) => ({ format: RECORD_FORMAT, node: { id: nodeId }, agent, tasks: [known], ...more });
const journal = new Map<TaskId, { epoch: number; sha256: string }>([
  [known.task_id, { epoch: known.epoch, sha256: known.result_sha256 }],
]);
const sign = (text: string, identity: { nodeId: typeof nodeId; tls: typeof tls } | null = { nodeId, tls }) =>
  signRecord(host.system, {
    identity: async () => identity,
    resultOf: (taskId) => journal.get(taskId) ?? null,
  })({ text }, { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined });
const refused = async (text: string) => {
  const reply = await sign(text);
  return reply.ok ? "signed" : reply.error;
};

describe("the signature of a sanitization record", () => {
  it("verifies with the key of the certificate, over exactly the text", async () => {
    const text = canonicalJson(record({ note: "Grüße\n" }));
    const reply = await sign(text);
    if (!reply.ok) throw new Error(reply.message);
    const { signature, certificate_pem, certificate_serial } = task.result.parse(reply.result);
    expect(certificate_serial).toBe(agent["certificate_serial"]);
    const key = new X509Certificate(certificate_pem).publicKey;
    expect(verify("sha256", Buffer.from(text), key, Buffer.from(signature, "base64"))).toBe(true);
    expect(verify("sha256", Buffer.from(`${text} `), key, Buffer.from(signature, "base64"))).toBe(false);
    expect(createPublicKey(tls.key).equals(key)).toBe(true);
  });

  it("names the tasks that the journal does not have, and does not compare tasks without a result", async () => {
    const lost = { ...known, task_id: newTaskId() };
    const failed = { ...known, task_id: newTaskId(), result_sha256: null };
    const reply = await sign(canonicalJson(record({ tasks: [lost, known, failed] })));
    expect(reply).toMatchObject({ ok: true, result: { unknown_tasks: [lost.task_id] } });
  });

  it.each([
    ["another result", { result_sha256: hex("another result") }],
    ["another delivery", { epoch: 3 }],
  ])("is refused for %s than the journal has, and names the task", async (_, more) => {
    const reply = await sign(canonicalJson(record({ tasks: [{ ...known, ...more }] })));
    expect(reply).toMatchObject({ ok: false, error: "result_differs" });
    expect(reply.ok ? "" : reply.message).toContain(known.task_id);
  });

  it("is refused for another node, and without an identity", async () => {
    expect(await refused(canonicalJson(record({ node: { id: newNodeId() } })))).toBe("foreign_node");
    expect(await sign(canonicalJson(record()), null)).toMatchObject({ ok: false, error: "foreign_node" });
  });

  it.each(["version", "boot_id", "certificate_serial", "public_key_sha256"])(
    "is refused if the record names another %s of the agent",
    async (member) => {
      const text = canonicalJson(record({ agent: { ...agent, [member]: hex("other").slice(0, 64) } }));
      const reply = await sign(text);
      expect(reply).toMatchObject({ ok: false, error: "agent_differs" });
      expect(reply.ok ? "" : reply.message).toContain(member);
    },
  );

  it.each([
    ["no JSON", () => "{"],
    ["spaces", () => JSON.stringify(record(), null, 1)],
    ["a repeated member", () => canonicalJson(record()).replace('"format":', '"format":"x","format":')],
    ["unsorted members", () => `{"tasks":[],"format":"${RECORD_FORMAT}"}`],
    ["another format", () => canonicalJson(record({ format: "muster-sanitization/2" }))],
    ["a task without an id", () => canonicalJson(record({ tasks: [{ epoch: 1, result_sha256: null }] }))],
    ["too many tasks", () => canonicalJson(record({ tasks: Array.from({ length: 33 }, () => known) }))],
    ["no agent", () => canonicalJson(record({ agent: null }))],
  ])("is refused for a text with %s", async (_, text) => {
    expect(await refused(text())).toBe("malformed");
  });

  it("never signs a text that is not canonical, whatever the text is", async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), async (text) => {
        expect(await refused(text)).toBe("malformed");
      }),
      { numRuns: 200 },
    );
  });

  it("needs the key of the certificate: another key does not verify", async () => {
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
      type: "pkcs8",
      format: "pem",
    });
    const reply = await sign(canonicalJson(record()), { nodeId, tls: { ...tls, key: other.toString() } });
    const signature = reply.ok ? reply.result.signature : "";
    const { publicKey } = new X509Certificate(tls.cert);
    expect(verify("sha256", Buffer.from(canonicalJson(record())), publicKey, Buffer.from(signature, "base64"))).toBe(
      false,
    );
  });
});
