import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Hello } from "../shared/protocol/frames.ts";
import { HostFolder, quietAgentLog } from "../test/fakes/hub/host-folder.ts";
import { newNodeId } from "../test/fakes/hub/orders.ts";
import { ScriptedHub } from "../test/fakes/hub/scripted-hub.ts";
import { loadConfig } from "./config.ts";
import { type Identity, IdentityStore } from "./identity.ts";
import { openSocket } from "./socket.ts";
import { TrustStore } from "./trust.ts";

const nodeId = newNodeId();
let hub: ScriptedHub;
let host: HostFolder;
let identity: Identity;
beforeEach(async () => {
  hub = await ScriptedHub.start(nodeId);
  host = new HostFolder();
  host.write("etc/muster/ca.pem", hub.authority.caPem);
  host.write("etc/muster/enrollment-token", "t".repeat(43));
  const config = {
    hub_url: hub.url,
    node_id: nodeId,
    generation: 1,
    enrollment_token_file: "/etc/muster/enrollment-token",
    ca_file: "/etc/muster/ca.pem",
    task_signing_public_key: hub.signer.publicKey,
  };
  host.write("etc/muster/agent.json", JSON.stringify(config));
  const own = loadConfig([], { MUSTER_ROOT: host.root });
  const trust = new TrustStore(own, host.system, quietAgentLog);
  identity = await new IdentityStore(own, host.system, trust, quietAgentLog).enroll();
});
afterEach(async () => {
  vi.useRealTimers();
  await hub.close();
  host.remove();
});

async function open() {
  const hello: Hello = {
    type: "hello",
    protocol_version: 1,
    agent_version: "test",
    node_id: nodeId,
    generation: 1,
    boot_id: await host.system.bootId(),
    journal: [],
  };
  const heard: string[] = [];
  const take = ({ type }: { type: string }) => void heard.push(type);
  const channel = await openSocket({ hubUrl: new URL(hub.url), identity, hello, log: quietAgentLog, take });
  const ended = { yet: false };
  void channel.ended.then(() => {
    ended.yet = true;
  });
  return { channel, heard, ended };
}

/**
 * Stops the test's clock, with which the channel measures the heartbeat's time to live. Only the function `passes` moves the test's clock, so that no
 * time to live expires on a busy computer.
 */
const stopClock = () => vi.useFakeTimers({ toFake: ["performance"] });
const passes = (ms: number) => vi.advanceTimersByTime(ms);

describe("a WebSocket to the hub", () => {
  it("uses the newest time to live of the hub, which grows with the fleet", async () => {
    stopClock();
    hub.heartbeatTtlMs = 10_000;
    const { channel, heard, ended } = await open();
    hub.heartbeatTtlMs = 60_000;
    channel.send({ type: "heartbeat", seq: 1 });
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["heartbeat.ack"]);
    // The hub is silent for 21 seconds, longer than its welcome allowed (10 seconds) and shorter than its later answer allows (60 seconds).
    passes(21_000);
    channel.send({ type: "heartbeat", seq: 2 });
    await expect.poll(() => heard.length, { timeout: 20_000 }).toBe(2);
    expect(ended.yet).toBe(false);
    channel.close("stopped");
  });

  it("ends when nothing was received for two times to live", async () => {
    stopClock();
    hub.heartbeatTtlMs = 10_000;
    const { channel, ended } = await open();
    hub.silent = true;
    passes(20_000);
    channel.send({ type: "heartbeat", seq: 1 });
    expect(ended.yet).toBe(false);
    passes(1);
    channel.send({ type: "heartbeat", seq: 2 });
    await expect.poll(() => ended.yet, { timeout: 20_000 }).toBe(true);
  });
});
