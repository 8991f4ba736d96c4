import { LATE_REPORT_SECONDS, type PowerActionState, type PowerVerb } from "../../shared/power.ts";

/** What a node's newest power action says. */
export interface PowerRecord {
  readonly verb: PowerVerb;
  readonly state: PowerActionState;
  readonly generation: number;
  readonly requestedBy: string;
  readonly reason: string;
  readonly requestedAt: Date;
  readonly finishedAt: Date | null;
}

/** Why a host does not report although it is not broken: at somebody's request the host is being switched off, is off, or restarts. */
export interface PowerIntent {
  readonly kind: "stopping" | "off" | "restarting";
  readonly by: string;
  readonly reason: string;
  readonly since: Date;
}

/**
 * Says whether somebody wants the node's host to be away. A host that reports after it was switched off is on again, whoever switched it on, so its
 * later silence is a fault. `agentSeenAt` is the time of the last report of the node's present generation.
 */
export function powerIntentOf(
  newest: PowerRecord | undefined,
  node: { readonly generation: number },
  agentSeenAt: Date | null,
): PowerIntent | null {
  if (newest === undefined || newest.generation !== node.generation) return null;
  const { verb, state, requestedBy: by, reason, requestedAt, finishedAt } = newest;
  if (state === "running") return { kind: verb === "off" ? "stopping" : "restarting", by, reason, since: requestedAt };
  if (state !== "done" || verb !== "off" || finishedAt === null) return null;
  const isBack = agentSeenAt !== null && agentSeenAt.getTime() > finishedAt.getTime() + LATE_REPORT_SECONDS * 1000;
  return isBack ? null : { kind: "off", by, reason, since: finishedAt };
}

const DID = { stopping: "is powered off", off: "was powered off", restarting: "is restarted" } as const;

/** Says in words why the host is away, for operators. */
export const toldIntent = ({ kind, by, reason, since }: PowerIntent): string =>
  `its host ${DID[kind]} at the request of ${by} (${since.toISOString()}): ${reason}${kind === "off" ? ". Power it on with power-node, or for its tenant with power-on-instance" : ""}`;
