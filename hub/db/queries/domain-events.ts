import { sql } from "drizzle-orm";
import { domainEvents } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** The seed's event types (lifecycle 8.0). */
export const DOMAIN_EVENT_TYPES = [
  "node.onboarding.started",
  "node.onboarding.completed",
  "node.onboarding.failed",
  "node.onboarding.manual_intervention_required",
  "node.onboarding.cancelled",
  "node.decommission.started",
  "node.decommission.completed",
  "node.decommission.failed",
  "node.decommission.manual_intervention_required",
  "node.decommission.cancelled",
  "node.status.changed",
] as const;
export type DomainEventType = (typeof DOMAIN_EVENT_TYPES)[number];

/** The upper 16 bits of the advisory locks that mark running writers of events; the lower 48 are a sequence number. */
export const EVENT_LOCK_SPACE = 0x4d45;

/**
 * Until it ends, the transaction is marked with the last number given out before its own, so that readers wait for it (`listDomainEvents`). The
 * mark is shared: no writer waits for another.
 */
async function markWriter(tx: Tx): Promise<void> {
  await tx.execute(
    sql`select pg_advisory_xact_lock_shared((${EVENT_LOCK_SPACE}::int8 << 48) | (select last_value from domain_events_seq_seq))`,
  );
}

/** Written in the transaction that makes the event true; `subject` is e.g. `nodes/<id>` or `onboardings/<id>`. Never a secret in `data`. */
export async function recordDomainEvent(
  tx: Tx,
  event: { type: DomainEventType; subject: string; data: Readonly<Record<string, unknown>> },
): Promise<void> {
  await markWriter(tx);
  await tx.insert(domainEvents).values({ type: event.type, subject: event.subject, data: event.data });
}
