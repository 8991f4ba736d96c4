import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder, quietAgentLog } from "../test/fakes/hub/host-folder.ts";
import { newNodeId } from "../test/fakes/hub/orders.ts";
import { ScriptedHub } from "../test/fakes/hub/scripted-hub.ts";
import { loadConfig } from "./config.ts";
import { type Identity, IdentityStore } from "./identity.ts";
import { TrustStore } from "./trust.ts";

const STATE = "var/lib/muster/agent";
const TOKEN = "etc/muster/enrollment-token";
const nodeId = newNodeId();
let hub: ScriptedHub;
let host: HostFolder;
let identities: IdentityStore;
beforeEach(async () => {
  hub = await ScriptedHub.start(nodeId);
  host = new HostFolder();
  host.write("etc/muster/ca.pem", hub.authority.caPem);
  host.write(TOKEN, "t".repeat(43));
  const config = {
    hub_url: hub.url,
    node_id: nodeId,
    generation: 1,
    enrollment_token_file: `/${TOKEN}`,
    ca_file: "/etc/muster/ca.pem",
    task_signing_public_key: hub.signer.publicKey,
  };
  host.write("etc/muster/agent.json", JSON.stringify(config));
  const own = loadConfig([], { MUSTER_ROOT: host.root });
  const trust = new TrustStore(own, host.system, quietAgentLog);
  identities = new IdentityStore(own, host.system, trust, quietAgentLog);
});
afterEach(async () => {
  await hub.close();
  host.remove();
});

function mustRead(identity: Identity | null): Identity {
  if (identity === null) throw new Error("there is no identity on disk");
  return identity;
}

describe("the identity on disk", () => {
  it.each(["identity.json", "key.pem", "certificate.pem"])(
    "is absent when its %s is damaged or truncated",
    async (name) => {
      const enrolled = await identities.enroll();
      expect(await identities.read()).toEqual(enrolled);
      const whole = host.read(`${STATE}/${name}`);
      for (const text of ["", "\u0000\u0000\u0000", whole.slice(0, whole.length / 2)]) {
        host.write(`${STATE}/${name}`, text);
        expect(await identities.read()).toBeNull();
      }
      host.write(`${STATE}/${name}`, whole);
      expect(await identities.read()).toEqual(enrolled);
    },
  );

  it("is absent when the key does not belong to the certificate", async () => {
    await identities.enroll();
    const key = host.read(`${STATE}/key.pem`);
    host.write(TOKEN, "t".repeat(43));
    await identities.enroll();
    host.write(`${STATE}/key.pem`, key);
    expect(await identities.read()).toBeNull();
  });

  it("is enrolled with a new key when the key of an earlier attempt is damaged", async () => {
    host.write(`${STATE}/key-1.pem`, "");
    const { tls } = await identities.enroll();
    expect(tls.key).toContain("PRIVATE KEY");
    expect([host.mode(`${STATE}/key.pem`), host.has(`${STATE}/key-1.pem`), host.has(TOKEN)]).toEqual([
      "600",
      false,
      false,
    ]);
  });

  it("has another key after a renewal, and the renewal's temporary file is gone", async () => {
    const enrolled = await identities.enroll();
    const renewed = await identities.renew(enrolled);
    expect(renewed.tls.key).not.toBe(enrolled.tls.key);
    // A hub with a restored database has to know to which generation the certificate belongs.
    expect(hub.renewalQuery).toBe(`generation=${enrolled.generation}`);
    expect(await identities.read()).toEqual(renewed);
    expect(host.has(`${STATE}/key-next.pem`)).toBe(false);
  });

  it("repeats the request with the same key when the answer was lost, and with a new key when that key is damaged", async () => {
    const enrolled = await identities.enroll();
    hub.refuseRenewals = { status: 503, code: "unavailable" };
    await expect(identities.renew(enrolled)).rejects.toThrow();
    const asked = host.read(`${STATE}/key-next.pem`);
    expect(host.mode(`${STATE}/key-next.pem`)).toBe("600");
    await expect(identities.renew(enrolled)).rejects.toThrow();
    expect(host.read(`${STATE}/key-next.pem`)).toBe(asked);
    hub.refuseRenewals = null;
    expect((await identities.renew(enrolled)).tls.key).toBe(asked);
    host.write(`${STATE}/key-next.pem`, asked.slice(0, 40));
    const again = await identities.renew(mustRead(await identities.read()));
    expect(again.tls.key).toContain("PRIVATE KEY");
  });

  it("is complete after a power cut between any two files of a renewal, and after a second power cut", async () => {
    const enrolled = await identities.enroll();
    const files = ["key-next.pem", "certificate.pem", "key.pem", "identity.json"];
    const before = files.map((name) => (host.has(`${STATE}/${name}`) ? host.read(`${STATE}/${name}`) : null));
    hub.refuseRenewals = { status: 503, code: "unavailable" };
    await expect(identities.renew(enrolled)).rejects.toThrow();
    hub.refuseRenewals = null;
    const next = host.read(`${STATE}/key-next.pem`);
    const renewed = await identities.renew(enrolled);
    const after = [next, ...files.slice(1).map((name) => host.read(`${STATE}/${name}`))];
    for (let written = 0; written <= files.length; written += 1) {
      files.forEach((name, at) => {
        const text = at < written ? after[at] : before[at];
        if (text == null) rmSync(host.path(`${STATE}/${name}`), { force: true });
        else host.write(`${STATE}/${name}`, text);
      });
      const read = mustRead(await identities.read());
      expect(read.tls).toEqual(written < 2 ? enrolled.tls : renewed.tls);
      // The certificate renewal after the first power cut gets no answer from the hub, as if a second power cut interrupted the renewal.
      hub.refuseRenewals = { status: 503, code: "unavailable" };
      await expect(identities.renew(read)).rejects.toThrow();
      hub.refuseRenewals = null;
      expect(await identities.read()).toEqual(read);
      expect(mustRead(await identities.renew(read)).tls.cert).not.toBe(read.tls.cert);
    }
  });
});
