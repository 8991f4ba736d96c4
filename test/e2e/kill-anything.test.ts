import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { agentPids } from "../support/agent-processes.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { readCounters } from "../support/simulator-counters.ts";
import { tellUnfinished } from "../support/unfinished.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";

const HOSTS = demoHosts(8);
const HUB_KILLS = 6;

/**
 * How long the test keeps MAAS down, in milliseconds. The outage of MAAS is longer than three attempts of one call to MAAS, so a workflow's stage has
 * to wait for MAAS.
 */
const MAAS_AWAY_MS = 8_000;

describe("kill -9 of the region, of the hub and of agents while eight hosts are onboarded", () => {
  const stateDir = newHubFolder("muster-kill-");
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({ stateDir, machines: HOSTS.length, speed: 30 });
  });
  afterAll(async () => {
    await rig?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const active = async (): Promise<number> => (await rig.api.nodes()).filter((node) => node.status === "active").length;
  const waitingForMaas = async (): Promise<number> =>
    (await rig.api.onboardings()).filter(({ waiting_for }) =>
      /^MAAS to answer again .*: unavailable since /.test(waiting_for ?? ""),
    ).length;
  const running = async (): Promise<number> =>
    (await rig.api.onboardings()).filter(({ status }) => status === "running").length || Number.NaN;
  const settle = (ms: number) => new Promise((done) => setTimeout(done, ms));

  it("all eight hosts become active, and no outside effect happens twice", async () => {
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    // The outage of MAAS comes first in the test, because the first stages of an onboarding call MAAS themselves. After its first stages, an
    // onboarding may wait for the hub's watcher and make no call to MAAS.
    const back = await rig.keepMaasDown();
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: HOSTS });
    await until("each host at work says that it waits for MAAS", async () =>
      (await waitingForMaas()) === (await running()) ? true : undefined,
    );
    await settle(MAAS_AWAY_MS);
    expect((await rig.api.onboardings()).filter(({ status }) => status.startsWith("failed"))).toEqual([]);
    back();
    await settle(3_000);
    const backAgain = await rig.keepMaasDown();
    await settle(1_000);
    backAgain();
    for (let kill = 0; kill < HUB_KILLS; kill += 1) {
      await settle(700 + kill * 450);
      const victim = rig.hubPid();
      process.kill(victim, "SIGKILL");
      const [agent] = agentPids(join(stateDir, "hosts"));
      if (agent !== undefined) process.kill(agent, "SIGKILL");
      await until("the hub is started again", () => (rig.hubPid() === victim ? undefined : true));
      await rig.hubReady();
    }

    await until("all eight hosts are active", async () => ((await active()) === HOSTS.length ? true : undefined), {
      timeoutMs: LONG_WAIT_MS,
      everyMs: 500,
      explain: () => tellUnfinished(rig.api, stateDir),
    });
    const counters = await readCounters(rig.maas.control);
    expect(Object.keys(counters.machines)).toHaveLength(HOSTS.length);
    for (const [machine, calls] of Object.entries(counters.machines)) {
      expect({ machine, commission: calls.commission, deploy: calls.deploy, release: calls.release }).toEqual({
        machine,
        commission: 1,
        deploy: 1,
        release: 0,
      });
    }
    const onboardings = await rig.api.onboardings();
    expect(onboardings.map((onboarding) => onboarding.status)).toEqual(HOSTS.map(() => "completed"));
  });

  it("continues with the same data after everything was stopped and started again", async () => {
    await rig.stop();
    rig = await startRig({ stateDir, machines: HOSTS.length, speed: 30 });
    expect(await active()).toBe(HOSTS.length);
    await until("every agent is connected again", async () => {
      const nodes = await Promise.all((await rig.api.nodes()).map((node) => rig.api.node(node.id)));
      const connected = nodes.filter((node) =>
        node.conditions.some((condition) => condition.type === "agent.connected" && condition.status === "True"),
      );
      return connected.length === HOSTS.length ? true : undefined;
    });
  });
});
