import { generateKeyPairSync } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../test/fakes/hub/host-folder.ts";
import { newNodeId, OrderSigner } from "../test/fakes/hub/orders.ts";
import { ConfigError, loadConfig } from "./config.ts";

const PATH = "etc/muster/agent.json";
const given = {
  hub_url: "https://hub.test:8443",
  node_id: newNodeId(),
  generation: 1,
  enrollment_token_file: "/etc/muster/enrollment-token",
  ca_file: "/etc/muster/ca.pem",
  task_signing_public_key: new OrderSigner().publicKey,
};

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

describe("agent configuration", () => {
  it("uses a root folder from the environment or from the file itself", () => {
    host.write(PATH, JSON.stringify({ ...given, a_newer_setting: true }));
    const config = loadConfig([], { MUSTER_ROOT: host.root });
    expect(config).toMatchObject({ root: host.root, caFile: host.path("etc/muster/ca.pem"), generation: 1 });
    for (const path of ["/etc/muster/agent.json", host.path(PATH)])
      expect(loadConfig(["--config", path], { MUSTER_ROOT: `${host.root}/` })).toEqual(config);
    host.write(PATH, JSON.stringify({ ...given, root: host.root }));
    expect(loadConfig(["--config", host.path(PATH)], {})).toEqual(config);
  });

  it("names all faults at once and no value", () => {
    host.write(PATH, JSON.stringify({ ...given, hub_url: "http://hub.test", node_id: "canary", generation: -1 }));
    expect(() => loadConfig([], { MUSTER_ROOT: host.root })).toThrow(/hub_url.*node_id.*generation/);
    expect(() => loadConfig([], { MUSTER_ROOT: host.root })).not.toThrow(/canary/);
  });

  it("refuses a key that cannot verify orders", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ type: "spki", format: "pem" });
    const garbage = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----";
    for (const key of ["", "A".repeat(42), "A".repeat(44), `${"A".repeat(42)}+`, garbage, rsa.toString()]) {
      host.write(PATH, JSON.stringify({ ...given, task_signing_public_key: key }));
      expect(() => loadConfig([], { MUSTER_ROOT: host.root }), key).toThrow(
        /task_signing_public_key: must be an Ed25519/,
      );
    }
  });

  it("explains what to do when it is missing or not JSON", () => {
    expect(() => loadConfig([], { MUSTER_ROOT: host.root })).toThrow(ConfigError);
    host.write(PATH, "{");
    expect(() => loadConfig([], { MUSTER_ROOT: host.root })).toThrow(/bootstrap/);
  });
});
