import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { forgetCredentialFailures, listCredentials } from "../../../hub/db/queries/credential-uses.ts";
import { holdWatch } from "../../../hub/db/queries/maas-site-watches.ts";
import { bindNodeToMachine, unbindNode } from "../../../hub/db/queries/node-machines.ts";
import { lockNode } from "../../../hub/db/queries/nodes.ts";
import { listBreakers } from "../../../hub/db/queries/reconciler-breakers.ts";
import { waitKey } from "../../../hub/db/queries/workflow-wakes.ts";
import {
  maasCredentialUses,
  maasSiteProfiles,
  maasSites,
  nodes,
  tasks,
  workflows,
} from "../../../hub/db/schema/index.ts";
import { MaasError, type MaasPort } from "../../../hub/maas/port.ts";
import { Reconciler } from "../../../hub/reconciler/reconcile.ts";
import { emptyMemory, pollSite } from "../../../hub/watcher/poll.ts";
import { startDecommission } from "../../../hub/workflows/decommission/start-decommission.ts";
import { warnOfCredentials } from "../../../hub/workflows/onboarding/credential-warnings.ts";
import { DrainCreate } from "../../../shared/api/decommissions.ts";
import type { WorkflowId } from "../../../shared/ids.ts";
import { createLog } from "../../../shared/log.ts";
import { Secret } from "../../../shared/secret.ts";
import { type FleetNode, FleetRig } from "../../support/fleet-rig.ts";
import { quietLog } from "../../support/log.ts";

const DRAIN = { mode: "drain", ...DrainCreate.parse({ reason: "moving it" }) } as const;

/** The tests start each pass of the reconciler themselves, so that they know the state between two passes. */
describe("a pass of the reconciler", () => {
  let fleet: FleetRig;
  let maas: MaasPort;
  let reconciler: Reconciler;
  const hubId = randomUUID();
  const made: FleetNode[] = [];
  beforeAll(async () => {
    fleet = await FleetRig.start(25);
    for (let n = 0; n < 25; n += 1) made.push(await fleet.nodeInService());
    maas = await fleet.rig.services.maas(fleet.siteId);
  });
  beforeEach(async () => {
    reconciler = new Reconciler({ db: fleet.db, inTx: fleet.inTx, log: quietLog });
    await sweep();
  });
  afterAll(() => fleet?.close());

  const held = async () => {
    const watch = await holdWatch(fleet.db, fleet.siteId, hubId, 600);
    if (watch === null) throw new Error("another hub watches the site");
    return watch;
  };
  const pass = async (read: "some" | "all", port = maas) => {
    const { fence } = await held();
    await reconciler.reconcile({ siteId: fleet.siteId, fence, maas: port, read, unconfirmed: [] });
  };
  const poll = async () => {
    const { db, inTx, siteId } = fleet;
    const deps = { db, inTx, log: quietLog, sweepIntervalMs: 0 };
    await pollSite(deps, siteId, await held(), maas, emptyMemory());
  };
  const sweep = async () => {
    await poll();
    await pass("all");
  };
  const every = <T>(of: (node: Awaited<ReturnType<FleetRig["node"]>>) => T) =>
    Promise.all(made.map(async ({ nodeId }) => of(await fleet.node(nodeId))));

  it("asks MAAS for the token's user when it judges all nodes, but not for a few changed nodes", async () => {
    const [first] = made as [FleetNode];
    let asked = 0;
    const counting: MaasPort = {
      ...maas,
      whoami: () => {
        asked += 1;
        return maas.whoami();
      },
    };
    await pass("all", counting);
    expect(asked).toBe(1);
    fleet.change(first.machine, (one) => {
      one.powerState = "off";
    });
    await poll();
    await pass("some", counting);
    expect(await fleet.node(first.nodeId)).toMatchObject({ driftDetails: { rule: "powered_off" } });
    expect(asked).toBe(1);
    first.machine.powerState = "on";
  });

  it("does not wait for the locked row of a node without drift", async () => {
    const [first] = made as [FleetNode];
    await fleet.inTx(async (tx) => {
      await lockNode(tx, first.nodeId);
      await pass("all");
    });
  });

  it("restores the hardware sync of twenty hosts per pass, and of the others in the next pass", async () => {
    const unsynced = () => made.filter(({ machine }) => !machine.enableHwSync).length;
    const seeds = () => fleet.db.$count(tasks, eq(tasks.type, "node.hw_sync_reseed"));
    const stop = () => {
      for (const { machine } of made) machine.enableHwSync = false;
    };
    stop();
    await sweep();
    expect([await seeds(), unsynced()]).toEqual([20, 5]);
    await sweep();
    expect([await seeds(), unsynced()]).toEqual([25, 0]);
    for (const { deadline, createdAt } of await fleet.db.select().from(tasks))
      expect(deadline.getTime() - createdAt.getTime()).toBe(600_000);
    // Each host has already had its hardware-sync task of the present interval, so the reconciler only switches hardware sync on in MAAS.
    stop();
    await sweep();
    expect([await seeds(), unsynced()]).toEqual([25, 5]);
    await sweep();
    expect([await seeds(), unsynced()]).toEqual([25, 0]);
  });

  it("queues one seed of the sync per host and interval, counted from the last task", async () => {
    const [{ nodeId, machine }] = made as [FleetNode];
    const seeds = () => fleet.db.$count(tasks, and(eq(tasks.nodeId, nodeId), eq(tasks.type, "node.hw_sync_reseed")));
    const [interval] = await fleet.db
      .select({ seconds: maasSiteProfiles.hardwareSyncIntervalSeconds })
      .from(maasSiteProfiles);
    const toldBefore = (seconds: number) =>
      fleet.db
        .update(tasks)
        .set({ createdAt: sql`now() - make_interval(secs => ${seconds})` })
        .where(eq(tasks.nodeId, nodeId));
    if (interval === undefined) throw new Error("the site has no profile");
    const { seconds } = interval;
    const before = await seeds();
    machine.enableHwSync = false;
    await toldBefore(seconds - 30);
    await sweep();
    expect(await seeds()).toBe(before);
    machine.enableHwSync = false;
    await toldBefore(seconds + 1);
    await sweep();
    expect(await seeds()).toBe(before + 1);
  });

  it("makes up for a failed pass over all nodes with the next pass", async () => {
    const [first] = made as [FleetNode];
    const { host } = await fleet.node(first.nodeId);
    // The watcher does not see a change in the hub's own database, so only a full pass of the reconciler finds the changed row.
    await fleet.db.update(nodes).set({ host: "10.1.1.1" }).where(eq(nodes.id, first.nodeId));
    await pass("some");
    expect((await fleet.node(first.nodeId)).host).toBe("10.1.1.1");
    const away: MaasPort = {
      ...maas,
      whoami: () => Promise.reject(new MaasError({ code: "unavailable", operation: "whoami", message: "is away" })),
    };
    await expect(pass("all", away)).rejects.toMatchObject({ code: "unavailable" });
    await pass("some");
    expect((await fleet.node(first.nodeId)).host).toBe(host);
  });

  it("follows a poll that wakes exactly the workflows that wait for a changed node", async () => {
    const [changed, same] = made as [FleetNode, FleetNode];
    const waiting = made.slice(0, 2).map(({ nodeId }) => ({
      id: randomUUID() as WorkflowId,
      kind: "test",
      status: "running" as const,
      stage: "wait",
      input: {},
      waitOn: waitKey.node(nodeId),
      wakeAt: sql`now() + interval '1 hour'`,
    }));
    await fleet.db.insert(workflows).values(waiting);
    fleet.change(changed.machine, (one) => {
      one.locked = true;
    });
    await poll();
    const rows = await fleet.db
      .select({ on: workflows.waitOn, due: sql<boolean>`${workflows.wakeAt} <= now()` })
      .from(workflows)
      .where(eq(workflows.kind, "test"));
    expect(new Map(rows.map(({ on, due }) => [on, due]))).toEqual(
      new Map([
        [waitKey.node(changed.nodeId), true],
        [waitKey.node(same.nodeId), false],
      ]),
    );
    await fleet.db.delete(workflows).where(eq(workflows.kind, "test"));
  });

  it("leaves machines without a node alone, and logs their number only at level debug", async () => {
    const lines: unknown[] = [];
    const log = createLog("debug", (line) => lines.push(JSON.parse(line)));
    reconciler = new Reconciler({ db: fleet.db, inTx: fleet.inTx, log });
    await sweep();
    expect(lines).toEqual([]);
    const power = { address: "10.80.9.9", user: "root", pass: new Secret("none") };
    const { systemId } = await maas.createMachine({ hostname: "nobodys", architecture: "amd64/generic", power });
    await sweep();
    expect(lines).toEqual([expect.objectContaining({ level: "debug", site_id: fleet.siteId, count: 1 })]);
    // The simulated MAAS counts requests by machine, and has no counter for a machine without requests.
    expect(fleet.rig.maas.sim.region.state.counters[systemId]).toBeUndefined();
  });

  it("reports a token whose user lost its administrator rights, until the rights are back", async () => {
    const { region } = fleet.rig.maas.sim;
    const [user] = region.state.users;
    if (user === undefined) throw new Error("the region has no user");
    const warned = () => warnOfCredentials(fleet.inTx);
    const lacking = async () => {
      const secrets = await listCredentials(fleet.db, fleet.siteId);
      const token = secrets.find(({ lastFailureCode }) => lastFailureCode === "not_administrator");
      return { path: token?.path ?? "none", since: token?.lastFailedAt };
    };
    expect(await warned()).toBe(0);
    user.isSuperuser = false;
    await pass("all");
    const { since } = await lacking();
    await pass("all");
    expect(await lacking()).toEqual({ path: expect.any(String), since });
    expect(await warned()).toBe(1);
    const [event] = (await fleet.events(`maas-sites/${fleet.siteId}`)).slice(-1);
    expect(event).toMatchObject({
      type: "site.credential.warning",
      data: {
        credential: "maas_token",
        reason: "failing",
        message: expect.stringContaining("no longer an administrator"),
      },
    });
    // New credentials of a site clear what the hub has recorded about failures of the old credentials. With the new credentials, the hub must report
    // once more that the site's MAAS user is no administrator.
    await fleet.inTx(async (tx) => forgetCredentialFailures(tx, [(await lacking()).path]));
    expect(await warned()).toBe(0);
    await pass("all");
    expect(await warned()).toBe(1);
    user.isSuperuser = true;
    await pass("all");
    expect(await warned()).toBe(0);
    expect((await listCredentials(fleet.db, fleet.siteId)).map(({ warnedOf }) => warnedOf)).toEqual([null, null]);
  });

  it("changes no node when the owner of all machines is renamed under a new token, and learns the new name from live agents", async () => {
    // When a site gets new credentials, the hub forgets the known names of its MAAS user. Without the known names of its MAAS user, the hub cannot
    // tell under which name the user owned machines.
    await fleet.db.update(maasCredentialUses).set({ userNames: [] });
    const { region } = fleet.rig.maas.sim;
    const [user] = region.state.users;
    if (user === undefined) throw new Error("the region has no user");
    user.username = "renamed";
    for (const { machine } of made) machine.owner = "renamed";
    await sweep();
    expect(await every(({ status, driftDetails }) => [status, driftDetails?.rule, driftDetails?.action])).toEqual(
      made.map(() => ["active", "redeployed_outside", "none"]),
    );
    expect(await listBreakers(fleet.db)).toEqual([]);
    const [silent, ...others] = made as [FleetNode, ...FleetNode[]];
    await fleet.setConnected(silent.nodeId, false);
    for (const { nodeId } of others) await fleet.setConnected(nodeId, true);
    // The agent of the node `silent` fell silent before all other agents sent their reports. Somebody could have reinstalled the host of a silent
    // agent.
    await fleet.db.execute(
      "update agent_sessions set last_seen_at = last_seen_at - interval '1 day' where state = 'closed'",
    );
    await sweep();
    expect(await every(({ status, driftDetected, maasOwner }) => [status, driftDetected, maasOwner])).toEqual([
      ["quarantined", true, "admin"],
      ...others.map(() => ["active", false, "renamed"]),
    ]);
    await fleet.setConnected(silent.nodeId, true);
    await sweep();
    await sweep();
    expect(await fleet.node(silent.nodeId)).toMatchObject({
      status: "active",
      driftDetected: false,
      maasOwner: "renamed",
    });
  });

  it("changes no node that an operation took after the pass had read it", async () => {
    const [, , first, second] = made as [FleetNode, FleetNode, FleetNode, FleetNode];
    fleet.status(first.machine, "broken");
    await sweep();
    fleet.status(first.machine, "deployed");
    await fleet.setConnected(first.nodeId, true);
    fleet.status(second.machine, "ready");
    // The reconciler calls `whoami` of MAAS after it has read the nodes and before it changes the status of any node.
    const drainedMeanwhile: MaasPort = {
      ...maas,
      whoami: async () => {
        for (const { nodeId } of [first, second]) await fleet.inTx((tx) => startDecommission(tx, nodeId, DRAIN, "ann"));
        return maas.whoami();
      },
    };
    await poll();
    await pass("all", drainedMeanwhile);
    expect(await fleet.node(first.nodeId)).toMatchObject({ status: "quarantined", quarantinedAt: expect.any(Date) });
    expect(await fleet.node(second.nodeId)).toMatchObject({ status: "active", driftDetected: false });
  });

  it("gives a node that is bound anew the state of its new machine, and nothing of the old one", async () => {
    const [one, other] = made as [FleetNode, FleetNode];
    const bound = await fleet.node(one.nodeId);
    const { siteId, ipmiIp } = bound;
    await fleet.inTx((tx) => unbindNode(tx, other.nodeId));
    fleet.status(other.machine, "ready");
    fleet.status(one.machine, "broken");
    await sweep();
    const before = await fleet.node(one.nodeId);
    expect(before).toMatchObject({ status: "quarantined", driftDetected: true, lastMaasStatus: "Broken" });
    const rebind = (maasSystemId: string) =>
      fleet.inTx((tx) => bindNodeToMachine(tx, { nodeId: one.nodeId, siteId, maasSystemId, ipmiIp }));
    await rebind(other.machine.systemId);
    expect(await fleet.node(one.nodeId)).toMatchObject({
      maasSystemId: other.machine.systemId,
      lastMaasStatus: "Ready",
      lastMaasIps: ["10.99.0.2"],
      driftDetected: false,
      driftDetails: null,
      driftResolvedAt: null,
      quarantinedAt: null,
      maasOwner: null,
    });
    await rebind("never1");
    expect(await fleet.node(one.nodeId)).toMatchObject({ lastMaasStatus: null, lastMaasIps: null });
  });

  it("sets the sync interval of MAAS and of the hosts to the value of the profile", async () => {
    const { config } = fleet.rig.maas.sim.region.state;
    const interval = (seconds: number) =>
      fleet.db.update(maasSiteProfiles).set({ hardwareSyncIntervalSeconds: seconds });
    const [profile] = await fleet.db.select().from(maasSiteProfiles);
    await fleet.db.update(maasSites).set({ defaultProfileId: profile?.id ?? null });
    const asked = () =>
      fleet.db.$count(
        tasks,
        sql`${tasks.input} ->> 'interval_seconds' = '300' and ${tasks.type} = 'node.hw_sync_reseed'`,
      );
    reconciler = new Reconciler({ db: fleet.db, inTx: fleet.inTx, log: quietLog });
    await interval(300);
    // The reconciler gives a host one hardware-sync task per interval, so the test dates the existing tasks back by an hour.
    await fleet.db.update(tasks).set({ createdAt: sql`created_at - interval '1 hour'` });
    try {
      await pass("all");
      expect(config["hardware_sync_interval"]).toBe("5m");
      expect(await asked()).toBeGreaterThan(0);
    } finally {
      config["hardware_sync_interval"] = "15m";
      await interval(profile?.hardwareSyncIntervalSeconds ?? 900);
    }
  });
});
