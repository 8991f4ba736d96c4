import type { EventData, EventType } from "../../../shared/events.ts";
import { markOfWriter } from "../advisory-locks.ts";
import { noteChange } from "../committed.ts";
import { sql } from "../orm.ts";
import { domainEvents } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/**
 * Marks the transaction as a writer of events by a lock that names the last sequence number that PostgreSQL gave out before the transaction's first
 * event. The lock of a transaction that writes events is a shared advisory lock, so writers do not wait for each other. A transaction takes only one
 * advisory lock as a writer of events, because more locks would fill PostgreSQL's lock table. The transaction's setting `muster.writes_events` says
 * that the transaction holds the advisory lock of a writer of events. A rollback to a savepoint undoes the setting `muster.writes_events` together
 * with the advisory lock.
 */
async function markWriter(tx: Tx): Promise<void> {
  await tx.execute(sql`
    select set_config('muster.writes_events', 'yes', true),
      ${markOfWriter(sql`(select case when is_called then last_value else 0 end from domain_events_seq_seq)`)}
    where current_setting('muster.writes_events', true) is distinct from 'yes'`);
}

/** The `subject` of a domain event is, for example, `nodes/<id>` or `onboardings/<id>`. The `data` of a domain event must hold no secret. */
export async function recordDomainEvent<T extends EventType>(
  tx: Tx,
  event: { readonly type: T; readonly subject: string; readonly data: EventData<T> },
): Promise<void> {
  await recordDomainEvents(tx, [event]);
}

export async function recordDomainEvents<T extends EventType>(
  tx: Tx,
  events: readonly { readonly type: T; readonly subject: string; readonly data: EventData<T> }[],
): Promise<void> {
  if (events.length === 0) return;
  await markWriter(tx);
  await tx.insert(domainEvents).values(events.map(({ type, subject, data }) => ({ type, subject, data })));
  for (const { type, subject, data } of events) noteChange(tx, { what: "event", type, subject, data });
}
