import { randomUUID } from "node:crypto";
import type { ConditionOf, ReadinessSignal } from "../shared/readiness.ts";
import { bootstrapConditions } from "./bootstrap-status.ts";
import { STATE_DIR } from "./config.ts";
import type { Identity } from "./identity.ts";
import { messageOf } from "./message-of.ts";
import type { System } from "./system/system.ts";

const LEAST_FREE_BYTES = 64 * 1024 * 1024;
const MOST_SKEW_MS = 5 * 60_000;

export interface AgentFacts {
  readonly identity: Identity;
  readonly journalFault: string | null;
  readonly skewMs: number;
  /** The conditions of the host that the agent's health checks found. */
  readonly health: readonly ConditionOf<"agent">[];
}

/** A readiness report describes the host's present state, so the agent can make one at any time and not only after a boot. */
export async function readinessSignal(system: System, facts: AgentFacts): Promise<ReadinessSignal> {
  const bootId = await system.bootId();
  const observed = { observed_at: new Date().toISOString() };
  const faults = await healthFaults(system, facts);
  const healthy: ConditionOf<"agent"> =
    faults.length === 0
      ? {
          type: "agent.healthy",
          status: "True",
          reason: "Healthy",
          message: "Journal, disk and certificate are in order",
          ...observed,
        }
      : {
          type: "agent.healthy",
          status: "False",
          reason: faults[0]?.reason ?? "Unhealthy",
          message: faults
            .map((fault) => fault.message)
            .join("; ")
            .slice(0, 1000),
          ...observed,
        };
  const booted: ConditionOf<"agent"> = {
    type: "os.booted",
    status: "True",
    reason: "Booted",
    message: `Boot ${bootId}`,
    ...observed,
  };
  const conditions: ConditionOf<"agent">[] = [healthy, booted, ...(await bootstrapConditions(system)), ...facts.health];
  return { signal_id: randomUUID(), generation: facts.identity.generation, boot_id: bootId, conditions };
}

/** Two readiness signals that differ only in ids, times and messages count as equal. */
export function saysTheSame(a: ReadinessSignal, b: ReadinessSignal): boolean {
  const told = (signal: ReadinessSignal) =>
    JSON.stringify(signal.conditions.map(({ type, status, reason }) => [type, status, reason]));
  return a.generation === b.generation && a.boot_id === b.boot_id && told(a) === told(b);
}

async function healthFaults(
  system: System,
  { identity, journalFault, skewMs }: AgentFacts,
): Promise<{ reason: string; message: string }[]> {
  const faults: { reason: string; message: string }[] = [];
  try {
    await system.write(`${STATE_DIR}/health-probe`, `${new Date().toISOString()}\n`, 0o644);
    const free = await system.freeBytes(STATE_DIR);
    if (free < LEAST_FREE_BYTES)
      faults.push({ reason: "DiskFull", message: `Only ${free} bytes are free below ${STATE_DIR}` });
  } catch (error) {
    const message = `${STATE_DIR} cannot be written: ${messageOf(error)}`;
    faults.push({ reason: "StateNotWritable", message });
  }
  if (journalFault !== null)
    faults.push({ reason: "JournalNotWritable", message: `The journal cannot be written: ${journalFault}` });
  if (Math.abs(skewMs) > MOST_SKEW_MS)
    faults.push({
      reason: "ClockSkewed",
      message: `The host's clock is ${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? "behind" : "ahead of"} the hub's; check its time service`,
    });
  if (identity.notAfter.getTime() <= Date.now() + skewMs)
    faults.push({
      reason: "CertificateExpired",
      message: `The certificate expired at ${identity.notAfter.toISOString()} and could not be renewed`,
    });
  return faults;
}
