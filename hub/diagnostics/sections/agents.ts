import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { sql } from "../../db/orm.ts";
import { ATTEMPT_KINDS } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import { bounded, iso, OF } from "../rows.ts";
import { databaseSection } from "../section.ts";

const MOST_COUNTS = 200;
const MOST_ATTEMPTS = 100;

const Sessions = z.strictObject({
  hub_id: z.uuid(),
  agent_version: z.string(),
  protocol_version: z.int(),
  channel: z.string(),
  state: z.string(),
  close_reason: z.string().nullable(),
  sessions: z.int(),
  longest_silence_seconds: z.int(),
  last_seen_at: Timestamp,
});
const Attempt = z.strictObject({
  address: z.string(),
  kind: z.enum(ATTEMPT_KINDS),
  node_id: z.uuid().nullable(),
  detail: z.string(),
  count: z.int(),
  first_at: Timestamp,
  last_at: Timestamp,
});

async function readSessions(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Sessions> & { of: number }>(sql`
    select hub_id, agent_version, protocol_version, channel, state, close_reason, count(*)::int as sessions,
      greatest(0, max(extract(epoch from now() - last_seen_at)))::int as longest_silence_seconds,
      ${iso("max(last_seen_at)")} as last_seen_at, ${OF}
    from agent_sessions group by 1, 2, 3, 4, 5, 6 order by state = 'closed', 7 desc, 1, 2, 3, 4, 6 limit ${MOST_COUNTS}`);
  return bounded("sessions", rows);
}

async function readAttempts(tx: Tx) {
  const { rows } = await tx.execute<z.input<typeof Attempt> & { of: number }>(sql`
    select address, kind, node_id, detail, count, ${iso("first_at")} as first_at, ${iso("last_at")} as last_at, ${OF}
    from connection_attempts order by last_at desc, address, kind limit ${MOST_ATTEMPTS}`);
  return bounded("connection_attempts", rows);
}

export const agents = databaseSection({
  name: "agents",
  about:
    "The newest session of each agent, counted by hub and version, and connections to the listener without a certificate",
  data: z.strictObject({ sessions: z.array(Sessions), connection_attempts: z.array(Attempt) }),
  read: async (tx) => {
    const sessions = await readSessions(tx);
    const attempts = await readAttempts(tx);
    return {
      data: { sessions: sessions.shown, connection_attempts: attempts.shown },
      leftOut: [...sessions.leftOut, ...attempts.leftOut],
    };
  },
});
