import { randomUUID } from "node:crypto";
import { eq, sql } from "../../hub/db/orm.ts";
import { readPowerAction } from "../../hub/db/queries/power-actions.ts";
import { agentSessions, allocations, nodes, type PowerAction, powerActions } from "../../hub/db/schema/index.ts";
import { requestInstancePower } from "../../hub/power/request-power.ts";
import { beginSteps } from "../../hub/power/sweep.ts";
import { AllocationId, type NodeId, type PowerActionId } from "../../shared/ids.ts";
import type { PowerVerb } from "../../shared/power.ts";
import { SSH_KEY } from "./allocatable-node.ts";
import { FleetRig } from "./fleet-rig.ts";
import { quietLog } from "./log.ts";
import { setConnected } from "./node-in-service.ts";
import { until } from "./until.ts";

export const ANN = { name: "ann", tenant: null };
export const asked = (verb: PowerVerb, more: object = {}) => ({
  ...{ verb, immediate: false, reason: "a test", by: ANN },
  ...more,
});

/** Instances at a simulated MAAS, whose power actions a test takes from step to step. */
export class PowerRig {
  readonly fleet: FleetRig;

  private constructor(fleet: FleetRig) {
    this.fleet = fleet;
  }

  static async start(machines: number): Promise<PowerRig> {
    return new PowerRig(await FleetRig.start(machines));
  }

  close(): Promise<void> {
    return this.fleet.close();
  }

  /** Makes an instance whose host is on. */
  async instance() {
    const { fleet } = this;
    const { nodeId, hostname, machine } = await fleet.nodeInService();
    const box = fleet.rig.maas.sim.region.hardwareOf(machine);
    if (box === undefined) throw new Error("the machine has no hardware");
    box.power = "on";
    const id = AllocationId.parse(randomUUID());
    const account = { tenant: "acme", loginUser: "alice", sshKeys: [SSH_KEY], grantsRoot: false, labels: {} };
    await fleet.db.insert(allocations).values({
      ...{ id, nodeId, siteId: fleet.siteId, hostname, generation: 0, createdBy: "ann", status: "active", ...account },
    });
    return { id, nodeId, machine, box };
  }

  ask(id: AllocationId, verb: PowerVerb, more: object = {}): Promise<PowerAction> {
    return this.fleet.inTx((tx) => requestInstancePower(tx, id, asked(verb, more)));
  }

  /** Lets all steps that are due end, as if the time of each wait were over. */
  async go(maas = this.fleet.rig.services.maas): Promise<void> {
    const { db, inTx } = this.fleet;
    await db.update(powerActions).set({ wakeAt: sql`now()`, claimedUntil: null });
    await Promise.all(await beginSteps({ db, inTx, log: quietLog, maas }));
  }

  async read(id: PowerActionId): Promise<PowerAction> {
    const row = await readPowerAction(this.fleet.db, id);
    if (row === null) throw new Error("the action is gone");
    return row;
  }

  becomes(id: PowerActionId, state: string): Promise<PowerAction> {
    return until(`the action to be ${state}`, async () => {
      await this.go();
      const row = await this.read(id);
      return row.state === state ? row : undefined;
    });
  }

  waitsFor(id: PowerActionId, reason: string): Promise<true> {
    return until(`the action to wait for ${reason}`, async () => {
      await this.go();
      return (await this.read(id)).waitReason === reason ? true : undefined;
    });
  }

  /** Lets the host's agent connect from the given boot. */
  async boot(nodeId: NodeId, bootId: string): Promise<void> {
    const { db, rig } = this.fleet;
    await setConnected(rig, nodeId, true);
    const now = sql`clock_timestamp()`;
    await db
      .update(agentSessions)
      .set({ bootId, connectedAt: now, lastSeenAt: now })
      .where(eq(agentSessions.nodeId, nodeId));
    await db.update(nodes).set({ lastAgentContactAt: now }).where(eq(nodes.id, nodeId));
  }

  /** How often MAAS was told to do what to the machine. */
  counts(machine: { readonly systemId: string }): Readonly<Record<string, number>> {
    return this.fleet.rig.maas.sim.region.state.counters[machine.systemId] ?? {};
  }
}
