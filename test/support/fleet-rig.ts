import { randomUUID } from "node:crypto";
import { eq, sql } from "../../hub/db/orm.ts";
import { agentSessions, domainEvents, maasSiteWatches, nodeMaasState, nodes } from "../../hub/db/schema/index.ts";
import { Reconciler } from "../../hub/reconciler/reconcile.ts";
import { startWatcher, type Watcher } from "../../hub/watcher/watcher.ts";
import type { NodeId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { newInterface } from "../fakes/maas/engine/inventory.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { quietLog } from "./log.ts";
import { nodeInService, recordOnboarding, setConnected } from "./node-in-service.ts";
import { type OnboardingRig, startOnboardingRig } from "./onboarding-rig.ts";
import { until } from "./until.ts";

export interface FleetNode {
  readonly nodeId: NodeId;
  readonly hostname: string;
  readonly machine: Machine;
}

/**
 * A test site whose active nodes have deployed machines in the simulated MAAS region. After a call of `watch`, a watcher and a reconciler observe the
 * site.
 */
export class FleetRig {
  readonly rig: OnboardingRig;
  readonly #watchers: Watcher[] = [];
  #made = 0;

  private constructor(rig: OnboardingRig) {
    this.rig = rig;
  }

  static async start(machines: number): Promise<FleetRig> {
    return new FleetRig(await startOnboardingRig({ machines }));
  }

  get db() {
    return this.rig.test.database.db;
  }
  get inTx() {
    return this.rig.test.database.inTx;
  }
  get siteId() {
    return this.rig.siteId;
  }

  watch({ rollCallMs }: { rollCallMs?: number } = {}): Watcher {
    const { db, inTx } = this;
    const reconciler = new Reconciler({ db, inTx, log: quietLog });
    const watcher = startWatcher({
      db,
      inTx,
      hubId: randomUUID(),
      clientFor: this.rig.services.maas,
      log: quietLog,
      pollIntervalMs: 30,
      sweepIntervalMs: 3_600_000,
      ...(rollCallMs === undefined ? {} : { rollCallMs }),
      onPolled: (look) => reconciler.reconcile(look),
    });
    this.#watchers.push(watcher);
    return watcher;
  }

  /** Creates an active node whose machine is deployed and uses hardware sync. */
  async nodeInService(): Promise<FleetNode> {
    this.#made += 1;
    const hostname = `host-${this.#made}`;
    const ipmiIp = bmcAddress(this.#made);
    const maas = await this.rig.services.maas(this.siteId);
    const { systemId } = await maas.createMachine({
      hostname,
      architecture: "amd64/generic",
      power: { address: ipmiIp, user: SITE_BMC_USER, pass: new Secret(SITE_BMC_PASSWORD) },
    });
    const machine = this.rig.maas.sim.region.machine(systemId);
    this.#deploy(machine);
    const nodeId = await nodeInService(this.rig, hostname);
    await recordOnboarding(this.rig, { nodeId, hostname, ipmiIp, maasSystemId: systemId });
    return { nodeId, hostname, machine };
  }

  #deploy(machine: Machine): void {
    const { region } = this.rig.maas.sim;
    region.forceStatus(machine, STATUS.deployed);
    region.setOwner(machine, "admin");
    machine.powerState = "on";
    machine.enableHwSync = true;
    machine.syncInterval = 900;
    machine.lastSync = Date.now();
    const nic = newInterface(region, "eno1", `02:00:00:00:01:${this.#made.toString(16).padStart(2, "0")}`);
    machine.interfaces = [nic];
    machine.bootInterfaceId = nic.id;
    this.address(machine, `10.99.0.${this.#made}`);
  }

  address(machine: Machine, ipAddress: string): void {
    for (const nic of machine.interfaces)
      nic.links = [{ id: 90_000 + nic.id, mode: "dhcp", subnetId: null, ipAddress }];
  }

  /** Changes the node's machine in MAAS as a MAAS user other than the hub's would do. */
  change(machine: Machine, change: (machine: Machine) => void): void {
    const { region } = this.rig.maas.sim;
    change(machine);
    region.event(machine, "DEBUG", "Node changed", "by somebody else");
    region.changed();
  }
  status = (machine: Machine, status: keyof typeof STATUS): void =>
    this.change(machine, () => this.rig.maas.sim.region.forceStatus(machine, STATUS[status]));

  setConnected = (nodeId: NodeId, open: boolean): Promise<void> => setConnected(this.rig, nodeId, open);

  /** Changes the database as if the node's agent had been disconnected for the given time. */
  async goneFor(nodeId: NodeId, ago: string): Promise<void> {
    await this.setConnected(nodeId, false);
    const then = sql`now() - ${ago}::interval`;
    await this.db
      .update(agentSessions)
      .set({ closedAt: then, lastSeenAt: then })
      .where(eq(agentSessions.nodeId, nodeId));
  }

  async requestSweep(): Promise<void> {
    const now = { wakeRequestedAt: sql`now()`, sweepRequestedAt: sql`now()` };
    await this.db
      .insert(maasSiteWatches)
      .values({ siteId: this.siteId, ...now })
      .onConflictDoUpdate({ target: maasSiteWatches.siteId, set: now });
  }
  /**
   * Waits until the watcher has read all machines and the reconciler has judged all nodes. `sweep` waits for two sweeps of the watcher, because the
   * reconciler judges the nodes of the first before the second starts.
   */
  async sweep(): Promise<void> {
    for (const which of ["first", "second"]) {
      await this.requestSweep();
      await until(`the ${which} sweep`, async () => {
        const [watch] = await this.db
          .select({ requestedAt: maasSiteWatches.sweepRequestedAt })
          .from(maasSiteWatches)
          .where(eq(maasSiteWatches.siteId, this.siteId));
        return watch?.requestedAt === null ? true : undefined;
      });
    }
  }

  async node(nodeId: NodeId) {
    const [row] = await this.db
      .select({ node: nodes, state: nodeMaasState })
      .from(nodes)
      .innerJoin(nodeMaasState, eq(nodeMaasState.nodeId, nodes.id))
      .where(eq(nodes.id, nodeId));
    if (row === undefined) throw new Error(`node ${nodeId} has no record`);
    return { ...row.node, ...row.state };
  }
  drifted = (nodeId: NodeId, rule: string) =>
    until(`drift ${rule}`, async () => {
      const node = await this.node(nodeId);
      return node.driftDetected && node.driftDetails?.rule === rule ? node : undefined;
    });
  becomes = (nodeId: NodeId, status: string) =>
    until(`the node to be ${status}`, async () => {
      const node = await this.node(nodeId);
      return node.status === status ? node : undefined;
    });
  async events(subject: string): Promise<{ type: string; data: Record<string, unknown> }[]> {
    const rows = await this.db
      .select({ type: domainEvents.type, data: domainEvents.data })
      .from(domainEvents)
      .where(eq(domainEvents.subject, subject))
      .orderBy(domainEvents.seq);
    return rows as { type: string; data: Record<string, unknown> }[];
  }

  async close(): Promise<void> {
    for (const watcher of this.#watchers) await watcher.close();
    await this.rig.close();
  }
}
