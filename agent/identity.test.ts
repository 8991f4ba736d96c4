import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder, quietAgentLog } from "../test/fakes/hub/host-folder.ts";
import { newNodeId } from "../test/fakes/hub/orders.ts";
import { ScriptedHub } from "../test/fakes/hub/scripted-hub.ts";
import { loadConfig } from "./config.ts";
import { IdentityStore } from "./identity.ts";

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
  identities = new IdentityStore(loadConfig([], { MUSTER_ROOT: host.root }), host.system, quietAgentLog);
});
afterEach(async () => {
  await hub.close();
  host.remove();
});

describe("the identity on disk", () => {
  it.each(["identity.json", "key.pem", "certificate.pem"])(
    "is none when its %s is damaged or cut off",
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

  it("is none when the key is not the certificate's", async () => {
    await identities.enroll();
    const key = host.read(`${STATE}/key.pem`);
    host.write(TOKEN, "t".repeat(43));
    await identities.enroll();
    host.write(`${STATE}/key.pem`, key);
    expect(await identities.read()).toBeNull();
  });

  it("is enrolled for with a new key when that of an earlier attempt is damaged", async () => {
    host.write(`${STATE}/key-1.pem`, "");
    const { tls } = await identities.enroll();
    expect(tls.key).toContain("PRIVATE KEY");
    expect([host.mode(`${STATE}/key.pem`), host.has(`${STATE}/key-1.pem`), host.has(TOKEN)]).toEqual([
      "600",
      false,
      false,
    ]);
  });

  it("keeps its key over a renewal", async () => {
    const enrolled = await identities.enroll();
    const renewed = await identities.renew(enrolled);
    expect(renewed.tls.key).toBe(enrolled.tls.key);
    expect(renewed.tls.cert).not.toBe(enrolled.tls.cert);
    expect(await identities.read()).toEqual(renewed);
  });
});
