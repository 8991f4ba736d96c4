import type { DriftAction, DriftRule, DriftSeverity } from "../../shared/drift.ts";
import type { NodeStatus } from "../../shared/node-status.ts";
import { isSameOwner, type MaasUser } from "../maas/same-owner.ts";
import { MEANINGS } from "./meanings.ts";

/**
 * The rules of drift (lifecycle 6.2, 6.4) as pure functions, which say what a machine's state in MAAS means for its node. An operation judges the
 * machine that it works on by the verdict table of its stages (`hub/workflows/machine/verdict-table.ts`). The rules of drift leave out a node that an
 * operation holds, because the operation's stages judge the machine.
 */

const MEANING_OF: Readonly<Record<number, (typeof MEANINGS)[keyof typeof MEANINGS]>> = MEANINGS;

/**
 * The phase of a node's life, which decides what an unexpected state of its MAAS machine means (the rules of drift). In the phase
 * `not_ours_to_judge`, an operation is responsible for the node, or the node is not in service yet.
 */
export type Phase = "in_service" | "quarantined" | "retired" | "not_ours_to_judge";
export const PHASES = {
  bootstrap_issued: "not_ours_to_judge",
  enrolling: "not_ours_to_judge",
  active: "in_service",
  offline: "in_service",
  quarantined: "quarantined",
  draining: "not_ours_to_judge",
  retired: "retired",
  removing: "not_ours_to_judge",
  deleted: "not_ours_to_judge",
} as const satisfies Record<NodeStatus, Phase>;

export interface NodeFacts {
  readonly status: NodeStatus;
  readonly hostname: string;
  readonly host: string | null;
  /** The owner that the machine had in MAAS when its node came into service. Null while the machine's owner in MAAS is not known. */
  readonly machineOwner: string | null;
  /** True if an unfinished operation holds the node. */
  readonly held: boolean;
  /** True if the node was adopted from its running machine and is not in service yet, because its agent is missing or not yet accepted. */
  readonly awaitsAgent: boolean;
  /** The time at which the reconciler quarantined the node; null if the node has no quarantine by the reconciler (decision N4). */
  readonly quarantinedAt: Date | null;
  /** The time at which the hub last heard from the agent of the node's present generation; null if the hub never heard from it. */
  readonly agentSeenAt: Date | null;
  readonly agentConnected: boolean;
  /** True if somebody has asked for the machine to be off or to restart, and its host has not reported since. */
  readonly awayByRequest: boolean;
  /** How many seconds ago the node was retired; null if the node is not retired, or if the hub does not know the time. */
  readonly retiredForSeconds: number | null;
  /**
   * True if Muster has released the node's machine before. A system that somebody deploys on the machine after Muster released it belongs to somebody
   * else.
   */
  readonly machineReleased: boolean;
  /**
   * `asked` is the sync interval that the hub last ordered the agent to set, and `set` is the sync interval that the agent has set. `syncSeed` is
   * null if the agent has never carried out an order to set the interval of hardware sync. `set` is null if the agent could not set the interval of
   * hardware sync.
   */
  readonly syncSeed: { readonly asked: number; readonly set: number | null } | null;
}
export interface MachineFacts {
  readonly systemId: string;
  readonly status: number;
  readonly statusName: string;
  readonly absent: boolean;
  readonly powerState: string;
  readonly owner: string | null;
  readonly locked: boolean;
  /** The list of the host's addresses is empty if the hub does not know them. */
  readonly hostAddresses: readonly string[];
  readonly enableHwSync: boolean | null;
  readonly lastSync: Date | null;
  readonly syncIntervalSeconds: number | null;
  readonly changedAt: Date;
  /** The time of the hub's last reading of the machine from MAAS, from which the hub's data about the machine is. */
  readonly readAt: Date;
}
export interface PolicyFacts {
  readonly requireHwSync: boolean;
  /** The interval of the host's hardware sync that the profile requires. Null if the profile's sync interval is not known. */
  readonly syncIntervalSeconds: number | null;
  /** The seconds for which a retired node keeps its machine; null if the node keeps the machine until a person releases it. */
  readonly retiredReleaseAfterSeconds: number | null;
  /** The hub's user in MAAS; null while the hub does not know it. */
  readonly maasUser: MaasUser | null;
}

export interface Finding {
  readonly rule: DriftRule;
  readonly severity: DriftSeverity;
  readonly action: DriftAction;
  readonly expected: string;
  readonly message: string;
}
/** `findings` are the node's drifts, from most to least urgent. `heal` is true if the reconciler may end its own quarantine of the node. */
export type Judgement =
  | { readonly kind: "not_judged"; readonly why: string }
  | { readonly kind: "judged"; readonly findings: readonly Finding[]; readonly heal: boolean };

/** `judgeDrift` does not judge a node whose machine was never read (null), or a node that an operation holds. */
export function judgeDrift(node: NodeFacts, machine: MachineFacts | null, policy: PolicyFacts): Judgement {
  if (node.held) return { kind: "not_judged", why: "an operation holds the node" };
  if (machine === null) return { kind: "not_judged", why: "its machine was not seen yet" };
  if (node.awaitsAgent) return { kind: "judged", findings: awaiting(node, machine, policy), heal: false };
  switch (PHASES[node.status]) {
    case "not_ours_to_judge":
      return { kind: "not_judged", why: `it is ${node.status}` };
    case "in_service":
      return { kind: "judged", findings: inService(node, machine, policy), heal: false };
    case "quarantined":
      return quarantined(node, machine, policy);
    case "retired":
      return { kind: "judged", findings: retired(node, machine, policy), heal: false };
  }
}

function inService(node: NodeFacts, machine: MachineFacts, policy: PolicyFacts): Finding[] {
  const broken = notDeployed(node, machine, policy);
  if (broken !== null) return [broken];
  const findings: Finding[] = [];
  const name = nameOf(node, machine);
  // If somebody has asked for the host to be off or to restart, the reconciler reports no drift of its power, its silent agent or its hardware sync
  // (decision N10).
  const isAway = node.awayByRequest && !saysItIsOn(node, machine);
  if (isAway) return findings;
  if (machine.powerState === "off" && !saysItIsOn(node, machine))
    findings.push({
      rule: "powered_off",
      severity: "high",
      action: "none",
      expected: "on",
      message: `${name} is off in MAAS although its node is ${node.status}. Find out who switched it off, then power it on in MAAS or drain the node.`,
    });
  else if (node.status === "offline")
    findings.push({
      rule: "agent_offline",
      severity: "warning",
      action: "none",
      expected: "a connected agent",
      message: `${name} is deployed, but nothing is heard of its agent. Look at the host: is it up, does it reach the hub, does muster-agent run?`,
    });
  if (policy.requireHwSync && syncStopped(machine, policy)) findings.push(syncFinding(node, name));
  else if (policy.requireHwSync) findings.push(...otherInterval(node, machine, policy));
  const [address] = machine.hostAddresses;
  if (address !== undefined && (node.host === null || !machine.hostAddresses.includes(node.host)))
    findings.push({
      rule: "host_changed",
      severity: "info",
      action: "update_host",
      expected: node.host ?? "none",
      message: `${name} has the address ${address} in MAAS instead of ${node.host ?? "none"}. Muster updates the node's record; nothing is to be done.`,
    });
  return findings;
}

/**
 * The host of an adopted node runs from the first minute, so the rules of a node in service apply to its machine (decision N8). For an adopted node
 * without an accepted agent, the reconciler only reports drift: it quarantines no node that takes no work anyway, and changes nothing on a host that
 * has not proven which host it is.
 */
const awaiting = (node: NodeFacts, machine: MachineFacts, policy: PolicyFacts): Finding[] =>
  inService(node, machine, policy).map((finding) =>
    finding.action === "update_host" ? finding : { ...finding, action: "none" as const },
  );

/**
 * MAAS reports the power state that it last read from the BMC, and sends no event when the power changes. If the hub heard from the machine's agent
 * after the machine's last change, the machine is on.
 */
const saysItIsOn = (node: NodeFacts, machine: MachineFacts): boolean =>
  node.agentConnected && isSameSystem(node, machine);

/** A quarantined node was in service until the drift caused its quarantine, and the drift's message says so. */
const though = ({ status, awaitsAgent }: NodeFacts): string =>
  awaitsAgent
    ? "although its node was adopted from it"
    : `although its node ${status === "quarantined" ? "was in service and is quarantined because of this" : `is ${status}`}`;

/** Returns the words that tell an operator to remove the node, and to drain it first unless the node's host never enrolled (`MAY_BEGIN`). */
const takeOut = ({ status }: NodeFacts): string =>
  status === "bootstrap_issued" ? "remove the node" : "drain and remove the node";
const atStart = (words: string): string => words.replace(/^./, (letter) => letter.toUpperCase());

/**
 * Returns the drift that keeps the node from being in service. Returns null if the machine is deployed and, as far as the hub knows, still runs the
 * node's own system.
 */
function notDeployed(node: NodeFacts, machine: MachineFacts, policy: PolicyFacts): Finding | null {
  const name = nameOf(node, machine);
  const is = `${name} is '${machine.statusName}' in MAAS ${though(node)}`;
  const quarantine = { action: "quarantine", expected: "Deployed" } as const;
  if (machine.absent)
    return {
      rule: "machine_deleted",
      severity: "critical",
      ...quarantine,
      message: `${name} is gone from MAAS ${though(node)}. ${atStart(takeOut(node))}, then onboard the host again.`,
    };
  const meaning = MEANING_OF[machine.status];
  if (meaning === undefined)
    return {
      rule: "unknown_maas_status",
      severity: "warning",
      action: "none",
      expected: "Deployed",
      message: `${is} (status ${machine.status}), which this version of Muster does not know. Muster changes nothing; look at the machine in MAAS.`,
    };
  switch (meaning) {
    case "released_outside":
      return {
        rule: meaning,
        severity: "critical",
        ...quarantine,
        message: `${is}: it was released outside of any operation. Look at what ran there; then ${takeOut(node)}, and onboard the host again.`,
      };
    case "redeployed_outside":
      return {
        rule: meaning,
        severity: "critical",
        ...quarantine,
        message: `${is}: somebody deploys it anew, and what ran there is lost. ${atStart(takeOut(node))}, and onboard the host again.`,
      };
    case "hardware_failure":
      return {
        rule: meaning,
        severity: "critical",
        ...quarantine,
        message: `${is}: MAAS found it failing. Read the machine's results in MAAS, have it repaired, then ${takeOut(node)}, or return it to service once it is deployed again.`,
      };
    case "recommissioned_outside":
    case "rescue_mode":
      return {
        rule: meaning,
        severity: "warning",
        action: "none",
        expected: "Deployed",
        message: `${is}: its host is down for that time. Find out who works on it; the node is usable again when the machine is Deployed again.`,
      };
    case "deployed":
      return otherOwner(node, machine, policy);
  }
}

/**
 * If a machine's owner has changed in MAAS, somebody has deployed the machine once more, or the MAAS user that owns the machine was renamed. A report
 * of the node's own agent after the change of the owner proves that the MAAS user was renamed. The hub knows the former names of its MAAS user only
 * for the token with which it saw these names. If both the machine's owner and the site's token are new, `otherOwner` waits for a report of the
 * node's agent. If the node's own agent stays silent after a change of the machine's owner, the machine was deployed once more.
 */
function otherOwner(node: NodeFacts, machine: MachineFacts, { maasUser }: PolicyFacts): Finding | null {
  if (node.machineOwner === null || isSameOwner(node.machineOwner, machine.owner, maasUser)) return null;
  if (isSameSystem(node, machine)) return null;
  const is = `${nameOf(node, machine)} is deployed by ${machine.owner ?? "nobody"} in MAAS instead of ${node.machineOwner}`;
  const finding = { rule: "redeployed_outside", severity: "critical", expected: "Deployed" } as const;
  if (machine.owner !== null && machine.owner === maasUser?.name && node.agentConnected)
    return {
      ...finding,
      action: "none",
      message: `${is}: the hub's user was renamed there, or the machine was deployed anew. Wait some minutes for its agent: if the agent reports, nothing is to be done; if it stays silent, the node is quarantined.`,
    };
  return {
    ...finding,
    action: "quarantine",
    message: `${is}: it was released and deployed anew outside of any operation. ${atStart(takeOut(node))}; onboard the host again once its owner has released it.`,
  };
}

/**
 * The reconciler ends its own quarantine of a node when the cause of the quarantine is proven to be gone (decision N4). The reconciler's cause for a
 * quarantine is gone if the machine is deployed again and the node's agent has reported since the machine's last change. The agent of a newly
 * deployed host cannot pass as the node's own agent.
 */
function quarantined(node: NodeFacts, machine: MachineFacts, policy: PolicyFacts): Judgement {
  const finding = notDeployed(node, machine, policy);
  if (node.quarantinedAt === null) return { kind: "judged", findings: [], heal: false };
  if (finding !== null) return { kind: "judged", findings: [{ ...finding, action: "none" }], heal: false };
  const proven = node.machineOwner !== null && node.agentConnected && isSameSystem(node, machine);
  if (proven) return { kind: "judged", findings: [], heal: true };
  const message = `${nameOf(node, machine)} is deployed again, but the agent of its node has not reported since. Bring the agent back, or return the node to service if you know that its system is unchanged. Otherwise drain and remove the node, and onboard the host again.`;
  const waits = {
    rule: "agent_offline",
    severity: "warning",
    action: "none",
    expected: "a connected agent",
    message,
  } as const;
  return { kind: "judged", findings: [waits], heal: false };
}

/** A release is destructive, so the reconciler releases a retired node's machine only if the system on the machine is surely the node's own. */
function retired(node: NodeFacts, machine: MachineFacts, policy: PolicyFacts): Finding[] {
  if (machine.absent || MEANING_OF[machine.status] !== "deployed") return [];
  const name = nameOf(node, machine);
  const finding = { rule: "retired_but_deployed", severity: "info", expected: "released and off" } as const;
  const none = (message: string): Finding[] => [{ ...finding, action: "none", message }];
  if (machine.locked)
    return none(
      `${name} of the retired node is locked in MAAS, so Muster does not release it. Unlock it there to let it be released.`,
    );
  const { maasUser } = policy;
  const isOurs =
    maasUser !== null && machine.owner === maasUser.name && isSameOwner(node.machineOwner, machine.owner, maasUser);
  if (!isOurs)
    return none(
      `${name} of the retired node is deployed by ${machine.owner ?? "nobody"} in MAAS and may not be the node's own system, so Muster does not release it. Release it when you are sure, or remove the node.`,
    );
  if (node.machineReleased)
    return none(
      `${name} of the retired node was released before and is deployed again, so Muster does not release it. Remove the node.`,
    );
  const after = policy.retiredReleaseAfterSeconds;
  if (after === null) return none(`${name} of the retired node is still deployed. Release it when you are sure.`);
  if (node.retiredForSeconds === null || node.retiredForSeconds < after)
    return none(
      `${name} of the retired node is released ${after} s after its retirement. Activate the node before that to keep it.`,
    );
  if (!isSameSystem(node, machine))
    return none(
      `${name} of the retired node has changed in MAAS since its agent last reported, so Muster does not release it. Release it when you are sure.`,
    );
  return [
    {
      ...finding,
      action: "release_machine",
      message: `${name} of the retired node is released and powered off; nothing is to be done.`,
    },
  ];
}

/** True if the hub heard from the node's own agent after the machine last changed, so that the machine still runs the node's own system. */
const isSameSystem = (node: NodeFacts, machine: MachineFacts): boolean =>
  node.agentSeenAt !== null && node.agentSeenAt > machine.changedAt;

/** By MAAS's own rule, a hardware sync that is late by half an interval is unhealthy (decision M3). */
const SYNC_TOLERANCE = 1.5;
/**
 * True if the host's hardware sync had stopped when the hub last read the machine from MAAS. MAAS sends no event about a hardware sync, so
 * `syncStopped` compares with the time of the hub's last reading of the machine and not with the present time. For a version of MAAS that does not
 * report hardware syncs, `syncStopped` returns false.
 */
function syncStopped(machine: MachineFacts, policy: PolicyFacts): boolean {
  const { enableHwSync, lastSync, syncIntervalSeconds, readAt } = machine;
  if (enableHwSync === false) return true;
  if (lastSync === null || syncIntervalSeconds === null) return false;
  // `syncStopped` uses the longer one of MAAS's and the profile's sync interval, because MAAS keeps for each machine the interval of its deploy.
  const interval = Math.max(syncIntervalSeconds, policy.syncIntervalSeconds ?? 0);
  return readAt.getTime() > lastSync.getTime() + SYNC_TOLERANCE * interval * 1000;
}

/**
 * Finds a host whose hardware sync has another interval than the profile's. A host's hardware sync has the interval that the host's agent set last,
 * or else the interval that MAAS set at the deploy.
 */
function otherInterval(node: NodeFacts, machine: MachineFacts, policy: PolicyFacts): Finding[] {
  const wanted = policy.syncIntervalSeconds;
  const runs = node.syncSeed?.set ?? machine.syncIntervalSeconds;
  if (wanted === null || runs === null || runs === wanted) return [];
  const finding = {
    rule: "hardware_sync_interval",
    severity: "info",
    expected: `hardware sync every ${wanted} s`,
  } as const;
  const is = `${nameOf(node, machine)} syncs its hardware to MAAS every ${runs} s instead of every ${wanted} s`;
  // If the hub has already ordered the agent to set the wanted interval of the hardware sync, and the host still has another one, the agent could not
  // set it.
  const why =
    node.syncSeed?.asked === wanted
      ? "Its agent could not change that: no agent replaces an operator's own maas_hardware_sync.timer in /etc/systemd/system, and an agent older than this hub cannot replace MAAS's timer either. Remove the operator's timer, or upgrade the agent."
      : "Its agent sets the host's timer; nothing is to be done.";
  return [
    node.agentConnected
      ? { ...finding, action: "reseed_hardware_sync", message: `${is}. ${why}` }
      : {
          ...finding,
          action: "none",
          message: `${is}, and its agent is away. Bring the agent back; it then sets the host's timer.`,
        },
  ];
}

/** Only a connected agent can repair the host's hardware sync. */
const syncFinding = (node: NodeFacts, name: string): Finding => ({
  rule: "hardware_sync_stopped",
  severity: "warning",
  action: node.agentConnected ? "reseed_hardware_sync" : "none",
  expected: "hardware sync within one and a half intervals",
  message: node.agentConnected
    ? `${name} does not sync its hardware to MAAS any more. Its agent seeds the sync again; if that does not help, read maas_hardware_sync.service on the host.`
    : `${name} does not sync its hardware to MAAS any more, and its agent is away. Bring the agent back; it then seeds the sync again.`,
});

const nameOf = (node: NodeFacts, machine: MachineFacts): string => `Machine ${machine.systemId} of ${node.hostname}`;
