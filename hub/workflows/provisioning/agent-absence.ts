import type { Evidence, Failure } from "../../../shared/failures.ts";
import { readOpenSession } from "../../db/queries/agent-sessions.ts";
import { listConnectionAttempts } from "../../db/queries/connection-attempts.ts";
import { readObservedMachine } from "../../db/queries/maas-machines.ts";
import { readEnrolledAt } from "../../db/queries/node-certificates.ts";
import { readConditions } from "../../db/queries/node-conditions.ts";
import { MaasError, type MaasEvent } from "../../maas/port.ts";
import { SecretError } from "../../secrets/port.ts";
import { type Absence, absenceFailure, hintOf } from "./absence-verdict.ts";
import { maasOf, type ProvisionContext, provisioningOf } from "./context.ts";

/** The hub searches the newest `EVENTS` events of a machine for a failed first boot. */
const EVENTS = 50;
const MOST_OF_EVENT = 200;

export async function absenceHint(context: ProvisionContext): Promise<string | null> {
  return hintOf(await readAbsence(context, null));
}

/** The failure of a stage that waited for the agent names the cause of the agent's absence, if the hub knows the cause (lifecycle 4.7). */
export async function agentAbsent(
  context: ProvisionContext,
  stage: { readonly evidence: Evidence; otherwise(message: string, evidence: Evidence): Failure },
): Promise<Failure> {
  return absenceFailure(await readAbsence(context, await firstBootInMaas(context)), stage);
}

async function readAbsence(context: ProvisionContext, maasSaw: string | null): Promise<Absence> {
  const { services, host, state, site, enteredAt } = context;
  const { nodeId, generation } = provisioningOf(context);
  const { db } = services;
  const observed =
    typeof state.maas_system_id === "string" ? await readObservedMachine(db, site.id, state.maas_system_id) : null;
  const addresses = [...new Set([...(state.deploy_ip_addresses ?? []), ...(observed?.ipAddresses ?? [])])];
  const told = await readConditions(db, nodeId, generation);
  return {
    hostname: host.hostname,
    addresses,
    connected: (await readOpenSession(db, nodeId, generation)) !== null,
    health: told.find((one) => one.type === "agent.healthy") ?? null,
    enrolledAt: await readEnrolledAt(db, nodeId, generation),
    // The hub ignores connection attempts from before the stage began, because an operator may have corrected the cause of their failure. A host that
    // waits for the hub repeats its attempt to connect within seconds.
    attempts: await listConnectionAttempts(db, { addresses, nodeId, since: enteredAt }),
    maasSaw,
  };
}

/**
 * Reads from MAAS's events whether the host's first boot failed, because cloud-init reports the end of the first boot to MAAS. If MAAS does not
 * answer, the failure of the stage contains no evidence about the first boot.
 */
async function firstBootInMaas(context: ProvisionContext): Promise<string | null> {
  const { maas_system_id: systemId } = context.state;
  if (typeof systemId !== "string") return null;
  try {
    return failedBoot(await (await maasOf(context)).machineEvents(systemId, { limit: EVENTS, level: "INFO" }));
  } catch (error) {
    if (error instanceof MaasError || error instanceof SecretError) return null;
    throw error;
  }
}

/**
 * Finds the host's report of a failed first boot in MAAS's events, which are newest first. MAAS's events from before the last event `Deploying`
 * belong to an earlier system.
 */
function failedBoot(events: readonly MaasEvent[]): string | null {
  const start = events.findIndex((event) => event.type === "Deploying");
  const ours = start === -1 ? events : events.slice(0, start);
  const failed = ours.find((event) => event.type === "Node post-installation failure");
  if (failed === undefined) return null;
  return failed.description
    .toWellFormed()
    .replace(/\p{C}+/gu, " ")
    .slice(0, MOST_OF_EVENT);
}
