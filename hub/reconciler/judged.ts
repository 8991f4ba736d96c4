import type { NodeStatus } from "../../shared/node-status.ts";
import type { DriftRow } from "../db/queries/drift.ts";
import type { Retirement } from "../db/queries/machine-releases.ts";
import { hostAddresses } from "../maas/host-address.ts";
import type { MaasUser } from "../maas/same-owner.ts";
import { powerIntentOf } from "../node/power-intent.ts";
import type { DriftStatus } from "./drift-record.ts";
import { type Judgement, judgeDrift, type MachineFacts, type NodeFacts } from "./rules.ts";

export interface Judged {
  readonly row: DriftRow;
  readonly judgement: Extract<Judgement, { kind: "judged" }>;
}

export const driftStatusOf = ({ machine }: Pick<DriftRow, "machine">): DriftStatus =>
  machine === null || machine.absent
    ? { name: "absent", code: null }
    : { name: machine.statusName, code: machine.status };

const AWAITS_AGENT: ReadonlySet<NodeStatus> = new Set(["bootstrap_issued", "enrolling"]);

/** Judges a node's drift by the facts of the node's row in the database. */
export function judge(row: DriftRow, retirement: Retirement | undefined, maasUser: MaasUser | null): Judgement {
  const { node, state, machine, session, policy, lastSweepAt } = row;
  const facts: NodeFacts = {
    status: node.status,
    hostname: node.hostname,
    host: node.host,
    machineOwner: state.maasOwner,
    held: row.heldBy !== null,
    awaitsAgent: node.onboardingMode === "adopted" && AWAITS_AGENT.has(node.status),
    quarantinedAt: state.quarantinedAt,
    agentSeenAt: session?.lastSeenAt ?? null,
    agentConnected: session?.state === "open",
    awayByRequest: powerIntentOf(row.power ?? undefined, node, session?.lastSeenAt ?? null) !== null,
    retiredForSeconds: retirement?.retiredForSeconds ?? null,
    machineReleased: retirement?.released ?? false,
    syncSeed: row.syncSeed,
  };
  const seen: MachineFacts | null = machine && {
    ...machine,
    hostAddresses: hostAddresses(machine.interfaceAddresses, row.hostInterface),
    changedAt: machine.observedAt,
    readAt: lastSweepAt !== null && lastSweepAt > machine.observedAt ? lastSweepAt : machine.observedAt,
  };
  return judgeDrift(facts, seen, {
    requireHwSync: policy?.requireHwSync ?? false,
    syncIntervalSeconds: policy?.hardwareSyncIntervalSeconds ?? null,
    retiredReleaseAfterSeconds: retirement?.retiredReleaseAfterSeconds ?? null,
    maasUser,
  });
}
