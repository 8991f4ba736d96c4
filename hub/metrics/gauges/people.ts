import { sql } from "../../db/orm.ts";
import { gauge } from "../counted/family.ts";
import { gaugeGroup } from "./group.ts";

/**
 * Tokens that expire within `SOON_DAYS` are counted, so that somebody rotates them in time. The gauge does not count a token that lives for
 * `SOON_DAYS` or less, because it would count such a token during its whole life. The hub does not store when a token was rotated, so it counts the
 * life of a rotated token from the time until which the old secret is valid.
 */
const SOON_DAYS = 7;

const open = gauge({
  name: "muster_approvals_open",
  help: "Requests that wait for a second person (pending), or that a second person has approved and nobody has sent again (approved).",
  labels: { state: ["pending", "approved"] },
  told: "database",
});
const oldest = gauge({
  name: "muster_approvals_oldest_pending_seconds",
  help: "How long the oldest request has waited for a second person; 0 if none waits.",
  labels: {},
  told: "database",
});
const late = gauge({
  name: "muster_approvals_pending_past_half",
  help: "Requests that have waited for a second person for more than half of the time after which they expire.",
  labels: {},
  told: "database",
});
const expiring = gauge({
  name: "muster_api_tokens_expiring",
  help: `Valid API tokens that expire within ${SOON_DAYS} days, without tokens whose whole life is ${SOON_DAYS} days or less; the life of a rotated token counts from the end of its old secret.`,
  labels: {},
  told: "database",
});
const unsealed = gauge({
  name: "muster_audit_oldest_unsealed_seconds",
  help: "Age of the oldest audit entry after the newest sealed one, which waits for its place in the audit chain; 0 if none waits.",
  labels: {},
  told: "database",
});
const whole = gauge({
  name: "muster_audit_chain_whole",
  help: "1 if the hubs' checks of the audit chain found no fault, 0 if the last whole check or the present one found one; missing until a hub has checked a part.",
  labels: {},
  told: "database",
});
const verified = gauge({
  name: "muster_audit_verified_sequence",
  help: "Number of the newest sealed audit entry that a check of the chain has ever reached.",
  labels: {},
  told: "database",
});
const checkAge = gauge({
  name: "muster_audit_check_age_seconds",
  help: "Time since a hub last checked a part of the audit chain; since the first check began if no part of it has ended yet.",
  labels: {},
  told: "database",
});
const exportLag = gauge({
  name: "muster_audit_export_lag_seconds",
  help: "Age of the oldest sealed audit entry that is not yet at its export's place, over all places to which a hub exported within the last hour; 0 if none waits or nothing is exported.",
  labels: {},
  told: "database",
});

type Row = {
  pending: number;
  approved: number;
  oldest: number | null;
  late: number;
  unsealed: number | null;
  expiring: number;
  faults: number | null;
  verified: number | null;
  check_age: number | null;
  checked: boolean | null;
  export_lag: number | null;
};

const one = (value: number) => [{ labels: {}, value }];

/** The gauges about the work of people: requests that wait for a second person, tokens that expire soon, and the checks of the audit log. */
export const peopleGauges = gaugeGroup({
  name: "people",
  families: [open, oldest, late, expiring, unsealed, whole, verified, checkAge, exportLag],
  collect: async (db) => {
    const { rows } = await db.execute<Row>(sql`
      select a.*, c.*,
        (select count(*)::int from api_tokens where revoked_at is null and expires_at > now()
          and expires_at <= now() + make_interval(days => ${SOON_DAYS}::int)
          and expires_at > coalesce(previous_until, created_at) + make_interval(days => ${SOON_DAYS}::int)) as expiring,
        (select greatest(0, extract(epoch from now() - occurred_at))::float8 from audit_logs
          where id > coalesce((select max(audit_id) from audit_seals), 0) order by id limit 1) as unsealed,
        (select extract(epoch from now() - min(s.sealed_at))::float8 from audit_exports e
          cross join lateral (select sealed_at from audit_seals where sequence > e.sequence order by sequence limit 1) s
          where e.lease_until > now() - interval '1 hour') as export_lag
      from (
        select (count(*) filter (where state = 'pending'))::int as pending, (count(*) filter (where state = 'approved'))::int as approved,
          extract(epoch from now() - min(created_at) filter (where state = 'pending'))::float8 as oldest,
          (count(*) filter (where state = 'pending' and now() - created_at > (expires_at - created_at) / 2))::int as late
        from approvals where state in ('pending', 'approved') and expires_at > now()) a
      left join (
        select faults + faults_before as faults, verified_through::float8 as verified,
          checked_at is not null as checked, extract(epoch from now() - coalesce(checked_at, began_at))::float8 as check_age
        from audit_checks) c on true`);
    const [row] = rows;
    if (row === undefined) return;
    open.show([
      { labels: { state: "pending" }, value: row.pending },
      { labels: { state: "approved" }, value: row.approved },
    ]);
    oldest.show(one(row.oldest ?? 0));
    late.show(one(row.late));
    expiring.show(one(row.expiring));
    unsealed.show(one(row.unsealed ?? 0));
    exportLag.show(one(row.export_lag ?? 0));
    const { faults, verified: through, check_age: age } = row;
    whole.show(row.checked === true ? one(faults === 0 ? 1 : 0) : []);
    verified.show(through === null ? [] : one(through));
    checkAge.show(age === null ? [] : one(Math.max(0, age)));
  },
});
