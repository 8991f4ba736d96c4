import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { DecommissionCreated, DecommissionDetail } from "../../shared/api/decommissions.ts";
import { runHubCommand } from "../support/hub-command.ts";
import { newHubFolder, removeHubState } from "../support/hub-state.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, type SeededSite, seedSite } from "../support/seed-site.ts";
import { SimulatorControl } from "../support/simulator-control.ts";
import { readCounters } from "../support/simulator-counters.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";

const ADMIN = "/api/v1/admin";
const HOSTS = demoHosts(4);
/** The hosts in service before the backup, the hosts whose onboarding was under way at the backup, and a host of which the backup knows nothing. */
const [SERVING, UNDER_WAY, SINCE] = [HOSTS.slice(0, 2), HOSTS.slice(2, 3), HOSTS.slice(3)];
const [DRAINED = "", RELEASED = ""] = SERVING.map(({ hostname }) => hostname);
const PATIENT = { timeoutMs: LONG_WAIT_MS, everyMs: 300 };
const Event = z.looseObject({ type: z.string() });
const Drift = z.looseObject({ items: z.array(z.looseObject({ node_id: z.string() })) });

/** The counts of the calls to MAAS for each machine, without the hardware syncs, which hosts make by themselves. */
const withoutSyncs = (machines: Readonly<Record<string, object>>) =>
  Object.fromEntries(Object.entries(machines).map(([machine, counts]) => [machine, { ...counts, sync: null }]));

describe("a database that is restored from a backup which is older than a batch of work", () => {
  const stateDir = newHubFolder("muster-older-");
  const backups = join(stateDir, "backups");
  let rig: Rig;
  let site: SeededSite;
  beforeAll(async () => {
    rig = await startRig({ stateDir, machines: HOSTS.length, speed: 30 });
    site = await seedSite(rig.api, rig.maas, HOSTS);
    mkdirSync(backups, { mode: 0o700 });
  });
  afterAll(async () => {
    await rig?.stop();
    removeHubState(stateDir);
  });

  const onboard = (nodes: typeof HOSTS) =>
    rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes });
  const nodeOf = async (hostname: string) => {
    const node = (await rig.api.nodes()).find((one) => one.hostname === hostname);
    if (node === undefined) throw new Error(`no node ${hostname}`);
    return node;
  };
  const inStatus = (hosts: readonly string[], status: string) =>
    until(
      `${hosts.join(", ")} are ${status}`,
      async () => {
        const nodes = await rig.api.nodes();
        const found = nodes.filter((node) => hosts.includes(node.hostname) && node.status === status);
        return found.length === hosts.length ? found : undefined;
      },
      PATIENT,
    );
  const names = (hosts: typeof HOSTS): string[] => hosts.map(({ hostname }) => hostname);

  async function decommission(hostname: string, verb: "drain" | "release"): Promise<void> {
    const { id } = await nodeOf(hostname);
    const body = verb === "drain" ? { reason: "test", deadline_seconds: 0, force: true } : { reason: "test" };
    const made = await rig.api.call(DecommissionCreated, "POST", `${ADMIN}/nodes/${id}/${verb}`, body);
    await until(
      `the ${verb} of ${hostname}`,
      async () => {
        const now = await rig.api.call(DecommissionDetail, "GET", `${ADMIN}/decommissions/${made.decommission_id}`);
        return now.status === "completed" ? true : undefined;
      },
      PATIENT,
    );
  }

  async function hubCommand(...words: string[]): Promise<string> {
    const state = join(stateDir, "hub");
    const { status, told } = await runHubCommand(words, { MUSTER_STATE_DIR: state, MUSTER_SHARED_DIR: state }).ended;
    expect({ status, told }).toEqual({ status: 0, told: expect.any(String) });
    return told;
  }

  const restoreEvents = async () =>
    (await rig.api.all(Event, `${ADMIN}/events?limit=200`)).filter(({ type }) => type === "hub.database.restored");

  it("all agents of known nodes connect, differences show, nothing happens twice, and operators are told", async () => {
    await onboard([...SERVING]);
    await inStatus(names(SERVING), "active");
    const control = new SimulatorControl(rig.maas.control);
    // While MAAS accepts no deploy, the nodes of the onboardings exist and their hosts have no agents.
    await control.fault({ match: { op: "deploy" }, kind: "status", code: 503 });
    await onboard([...UNDER_WAY]);
    await until(
      "the onboardings wait for the deploy",
      async () => {
        const stages = (await rig.api.onboardings()).filter(({ current_stage }) => current_stage === "deploy_via_maas");
        return stages.length === UNDER_WAY.length ? true : undefined;
      },
      PATIENT,
    );
    const told = await hubCommand("backup", "--to", backups);
    await control.clearFaults();

    await onboard([...SINCE]);
    await decommission(DRAINED, "drain");
    await decommission(RELEASED, "drain");
    await decommission(RELEASED, "release");
    await inStatus([...names(UNDER_WAY), ...names(SINCE)], "active");
    const before = await readCounters(rig.maas.control);

    const start = await rig.hubs[0]?.keepDown();
    const restored = await hubCommand("restore", "--replace", "--from", /^Backup: (.*)$/m.exec(told)?.[1] ?? "");
    expect(restored).toContain(`${SERVING.length + UNDER_WAY.length} nodes get no new tenant`);
    start?.();
    await until("the hub is up", async () => ((await fetch(`${rig.apiUrl}/readyz`)).ok ? true : undefined), PATIENT);
    await rig.hubReady();

    const connected = [...names(SERVING).filter((name) => name !== RELEASED), ...names(UNDER_WAY)];
    await until(
      "the agents of all known nodes are connected",
      async () => {
        const nodes = await Promise.all(connected.map(async (name) => rig.api.node((await nodeOf(name)).id)));
        const missing = nodes.filter(
          ({ conditions, status }) =>
            status !== "active" || conditions.find(({ type }) => type === "agent.connected")?.status !== "True",
        );
        if (missing.length > 0)
          throw new Error(missing.map(({ hostname, status }) => `${hostname} ${status}`).join(", "));
        return true;
      },
      PATIENT,
    );
    await inStatus([RELEASED], "quarantined");
    const drift = await rig.api.call(Drift, "GET", `${ADMIN}/reconciliation/drift`);
    expect(drift.items.map(({ node_id }) => node_id)).toContain((await nodeOf(RELEASED)).id);
    for (const node of await rig.api.nodes()) {
      expect(node.schedulable).toBe(false);
      const { health_overrides } = await rig.api.node(node.id);
      expect(health_overrides.map(({ source, set_by }) => [source, set_by])).toEqual([["restore", "restore"]]);
    }
    expect(await restoreEvents()).toHaveLength(1);
    expect((await rig.api.onboardings()).map(({ status }) => status)).not.toContain("failed_manual_intervention");
    const after = await readCounters(rig.maas.control);
    for (const [machine, { commission, deploy }] of Object.entries(after.machines))
      expect({ machine, commission, deploy }).toEqual({ machine, commission: 1, deploy: 1 });
    expect(withoutSyncs(after.machines)).toEqual(withoutSyncs(before.machines));
    expect((await rig.api.nodes()).map(({ hostname }) => hostname)).not.toContain(SINCE[0]?.hostname);
  });
});
