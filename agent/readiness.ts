import { randomUUID } from "node:crypto";
import type { ReadinessSignal, ReportedCondition } from "../shared/readiness.ts";
import { STATE_DIR } from "./config.ts";
import type { Identity } from "./identity.ts";
import type { System } from "./system/system.ts";

const LEAST_FREE_BYTES = 64 * 1024 * 1024;

/**
 * What the agent says of its host. These signals need no boot event: they are made from what is there, after each welcome and every few minutes.
 */
export async function readinessSignal(system: System, identity: Identity): Promise<ReadinessSignal> {
  const bootId = await system.bootId();
  const observed = { observed_at: new Date().toISOString() };
  const faults = await healthFaults(system, identity);
  const healthy: ReportedCondition =
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
  const booted: ReportedCondition = {
    type: "os.booted",
    status: "True",
    reason: "Booted",
    message: `Boot ${bootId}`,
    ...observed,
  };
  return { signal_id: randomUUID(), generation: identity.generation, boot_id: bootId, conditions: [healthy, booted] };
}

async function healthFaults(system: System, identity: Identity): Promise<{ reason: string; message: string }[]> {
  const faults: { reason: string; message: string }[] = [];
  try {
    await system.write(`${STATE_DIR}/health-probe`, `${new Date().toISOString()}\n`, 0o644);
  } catch (error) {
    faults.push({
      reason: "StateNotWritable",
      message: `${STATE_DIR} cannot be written: ${error instanceof Error ? error.message : String(error)}`,
    });
  }
  const free = await system.freeBytes(STATE_DIR);
  if (free < LEAST_FREE_BYTES)
    faults.push({ reason: "DiskFull", message: `Only ${free} bytes are free below ${STATE_DIR}` });
  if (identity.notAfter.getTime() <= Date.now())
    faults.push({
      reason: "CertificateExpired",
      message: `The certificate expired at ${identity.notAfter.toISOString()}`,
    });
  return faults;
}
