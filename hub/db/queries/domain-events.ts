import { domainEvents } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** The seed's event types (lifecycle 8.0). */
export const DOMAIN_EVENT_TYPES = [
  "node.onboarding.started",
  "node.onboarding.completed",
  "node.onboarding.failed",
  "node.onboarding.manual_intervention_required",
  "node.onboarding.cancelled",
  "node.status.changed",
] as const;
export type DomainEventType = (typeof DOMAIN_EVENT_TYPES)[number];

/** Written in the transaction that makes the event true; `subject` is e.g. `nodes/<id>` or `onboardings/<id>`. Never a secret in `data`. */
export async function recordDomainEvent(
  tx: Tx,
  event: { type: DomainEventType; subject: string; data: Readonly<Record<string, unknown>> },
): Promise<void> {
  await tx.insert(domainEvents).values({ type: event.type, subject: event.subject, data: event.data });
}
