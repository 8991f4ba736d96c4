import type { EventData, EventType } from "../../../shared/events.ts";
import { markOfWriter } from "../advisory-locks.ts";
import { sql } from "../orm.ts";
import { domainEvents } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/**
 * Until it ends, the transaction is marked with the last number given out before its first one, so that readers wait for it (`listDomainEvents`). The
 * mark is shared: no writer waits for another. One is enough, since the lowest is what counts, and more would fill the server's table of locks. That it
 * is held is remembered in the transaction itself, so that a savepoint which takes back the one takes back the other.
 */
async function markWriter(tx: Tx): Promise<void> {
  await tx.execute(sql`
    select set_config('muster.writes_events', 'yes', true),
      ${markOfWriter(sql`(select case when is_called then last_value else 0 end from domain_events_seq_seq)`)}
    where current_setting('muster.writes_events', true) is distinct from 'yes'`);
}

/** Written in the transaction that makes the event true; `subject` is e.g. `nodes/<id>` or `onboardings/<id>`. Never a secret in `data`. */
export async function recordDomainEvent<T extends EventType>(
  tx: Tx,
  event: { readonly type: T; readonly subject: string; readonly data: EventData<T> },
): Promise<void> {
  await markWriter(tx);
  await tx.insert(domainEvents).values({ type: event.type, subject: event.subject, data: event.data });
}
