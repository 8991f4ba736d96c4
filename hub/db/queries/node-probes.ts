import type { EXTERNAL_STATES } from "../../../shared/external-attempt.ts";
import type { NodeId } from "../../../shared/ids.ts";
import type { Probe } from "../../../shared/probes.ts";
import type { ConditionStatus } from "../../../shared/readiness.ts";
import { and, eq, type SQL, sql } from "../orm.ts";
import { nodeProbes } from "../schema/index.ts";
import type { Tx } from "../tx.ts";
import { profileOf } from "./decommissions.ts";

const texts = (values: readonly string[]): SQL => sql`any(${sql.param([...values])}::text[])`;

/** The states of an external provisioning attempt in which the host runs the system that the external system has installed, and no earlier system. */
const PROVISIONED: readonly (typeof EXTERNAL_STATES)[number][] = ["verifying", "completed", "unverified"];

/**
 * SQL that is true if the hub probes the host of the node `n`: while the node is `active` or `offline`, and for a host that an external system has
 * provisioned also while the node is not in service yet. While a node has none of the states that `isProbed` allows, its host may run no system, or a
 * system that will be replaced.
 */
const isProbed = sql`case when n.onboarding_mode = 'external'
  then n.status = ${texts(["bootstrap_issued", "enrolling", "active", "offline"])} and (
    select e.state = ${texts(PROVISIONED)} from external_attempts e where e.node_id = n.id order by e.number desc limit 1)
  else n.status = ${texts(["active", "offline"])} end`;

/** A change that is needed so that the hubs make exactly the probes that the nodes' profiles list: one probe of a node begins or ends. */
export type PlannedChange = {
  readonly nodeId: NodeId;
  readonly name: string;
} /** `isAnew` is true if the probe now checks something else or another host, so that its earlier results no longer count. */ & (
  | { readonly kind: "begin"; readonly probe: Probe; readonly generation: number; readonly isAnew: boolean }
  /** `isListed` is true if the node's profile still lists the probe, so that the probe ends because of the node's state. */
  | { readonly kind: "end"; readonly isListed: boolean }
);

/** The fields of a probe that change its schedule and its thresholds, but not what the probe checks. */
const HOW_OFTEN = sql.raw(`'{interval_seconds,timeout_seconds,successes,failures}'::text[]`);
/** SQL that is true if two rows describe the same check: the same generation and host, and probes that differ at most in the fields `HOW_OFTEN`. */
const sameQuestion = (one: SQL, other: SQL): SQL => sql`(${one}.generation = ${other}.generation
  and ${one}.host is not distinct from ${other}.host and ${one}.probe - ${HOW_OFTEN} = ${other}.probe - ${HOW_OFTEN})`;

/**
 * Returns up to `most` changes that are needed so that the hubs make exactly the probes that the nodes' profiles list. If no profile has a probe, the
 * SQL statement of `probesToChange` reads no node.
 */
export async function probesToChange(tx: Tx, most: number): Promise<PlannedChange[]> {
  const { rows } = await tx.execute<{
    node_id: NodeId;
    name: string;
    probe: Probe | null;
    generation: number | null;
    is_listed: boolean;
    is_anew: boolean;
  }>(sql`
    with listed as materialized (
      select x.node_id, x.generation, x.host, x.is_probed, p.value as probe, p.value ->> 'name' as name
      from (select n.id as node_id, n.generation, n.host, coalesce(${isProbed}, false) as is_probed, ${profileOf(sql`n.id`)} as profile_id
        from nodes n where n.status <> 'deleted' and exists (select from maas_site_profiles where probes <> '[]') offset 0) x
      join maas_site_profiles m on m.id = x.profile_id
      cross join lateral jsonb_array_elements(m.probes) p(value))
    select coalesce(l.node_id, s.node_id) as node_id, coalesce(l.name, s.name) as name, l.node_id is not null as is_listed,
      coalesce(not ${sameQuestion(sql`s`, sql`l`)}, true) as is_anew,
      case when l.is_probed then l.probe end as probe, case when l.is_probed then l.generation end as generation
    from listed l full join node_probes s on s.node_id = l.node_id and s.name = l.name
    where case when l.is_probed then (s.probe, s.generation, s.host) is distinct from (l.probe, l.generation, l.host) else s.node_id is not null end
    order by 1, 2 limit ${most}`);
  return rows.map(({ node_id: nodeId, name, probe, generation, is_listed: isListed, is_anew: isAnew }) =>
    probe === null || generation === null
      ? { kind: "end", nodeId, name, isListed }
      : { kind: "begin", nodeId, name, probe, generation, isAnew },
  );
}

/**
 * Begins new probes, and begins those probes anew that now check something else or another host. The next run of each probe that `beginProbes` stores
 * comes within `spreadSeconds`. A probe of which only the interval, the time-out or the numbers of results have changed keeps its status and its
 * counts of results.
 */
export async function beginProbes(
  tx: Tx,
  begun: readonly Extract<PlannedChange, { kind: "begin" }>[],
  spreadSeconds: number,
): Promise<void> {
  if (begun.length === 0) return;
  const rows = begun.map(({ nodeId, name, probe, generation }) => ({ node_id: nodeId, name, probe, generation }));
  const kept = sameQuestion(sql`node_probes`, sql`excluded`);
  await tx.execute(sql`
    insert into node_probes (node_id, name, probe, generation, host, next_at)
    select r.node_id, r.name, r.probe, r.generation, n.host, now() + random() * make_interval(secs => ${spreadSeconds})
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (node_id uuid, name text, probe jsonb, generation int)
    join nodes n on n.id = r.node_id
    on conflict (node_id, name) do update set probe = excluded.probe, generation = excluded.generation, host = excluded.host,
      next_at = excluded.next_at, claim = node_probes.claim + 1,
      status = case when ${kept} then node_probes.status else 'Unknown' end,
      successes = case when ${kept} then node_probes.successes else 0 end,
      failures = case when ${kept} then node_probes.failures else 0 end`);
}

export async function deleteProbes(
  tx: Tx,
  ended: readonly { readonly nodeId: NodeId; readonly name: string }[],
): Promise<void> {
  if (ended.length === 0) return;
  await tx.delete(nodeProbes).where(sql`(${nodeProbes.nodeId}, ${nodeProbes.name}) in (
    select * from unnest(${sql.param(ended.map(({ nodeId }) => nodeId))}::uuid[], ${sql.param(ended.map(({ name }) => name))}::text[]))`);
}

/** True if the hubs make any probes, so that a hub of a fleet without probes need not ask each second which are due. */
export async function hasProbes(tx: Tx): Promise<boolean> {
  const { rows } = await tx.execute<{ any: boolean }>(sql`select exists (select from node_probes) as any`);
  return rows[0]?.any === true;
}

/** A probe that this hub is about to make, with what its results have said so far. */
export interface ClaimedProbe {
  readonly nodeId: NodeId;
  readonly probe: Probe;
  readonly generation: number;
  /** The address or name of the node's host; null if the hub knows none. */
  readonly host: string | null;
  readonly claim: number;
  readonly status: ConditionStatus;
  readonly successes: number;
  readonly failures: number;
  /** How long the probe has been due. */
  readonly lateSeconds: number;
}

/**
 * Claims up to `most` due probes, the longest due first. `claimProbes` sets the time of a probe's next run, about an interval from now, so its claim
 * of the probe needs no lease: if the hub then dies, only one result is missing. `claimProbes` skips the probes that another hub is claiming at this
 * moment. `claimProbes` also skips the probes of a node whose address or generation has changed, until `beginProbes` has stored the new address and
 * generation for these probes.
 */
export async function claimProbes(tx: Tx, most: number): Promise<ClaimedProbe[]> {
  const { rows } = await tx.execute<{
    node_id: NodeId;
    probe: Probe;
    generation: number;
    host: string | null;
    claim: number;
    status: ConditionStatus;
    successes: number;
    failures: number;
    late: number;
  }>(sql`
    with due as (
      select s.node_id, s.name, s.next_at from node_probes s join nodes n on n.id = s.node_id
      where s.next_at <= now() and s.generation = n.generation and s.host is not distinct from n.host
      order by s.next_at limit ${most} for update of s skip locked)
    update node_probes s set claim = s.claim + 1,
      next_at = now() + make_interval(secs => (s.probe ->> 'interval_seconds')::float8 * (0.9 + 0.2 * random()))
    from due where s.node_id = due.node_id and s.name = due.name
    returning s.node_id, s.probe, s.generation, s.host, s.claim, s.status, s.successes, s.failures,
      extract(epoch from now() - due.next_at)::float8 as late`);
  return rows.map(({ node_id: nodeId, late: lateSeconds, ...row }) => ({ nodeId, ...row, lateSeconds }));
}

/**
 * When a hub claims a probe, it sets the time of the probe's next run to at most 1.1 intervals from now. If the next run of a probe is more than
 * `LATEST_INTERVALS` away, the database's clock was set back after a hub claimed the probe.
 */
const LATEST_INTERVALS = 1.2;

/**
 * Sets a new time, within one interval, for each probe whose next time is too late because the database's clock was set back. If the next run of
 * these probes got no new time, the hubs would not run them until the database's clock has caught up.
 */
export async function bringForward(tx: Tx): Promise<void> {
  const interval = sql`make_interval(secs => (s.probe ->> 'interval_seconds')::float8)`;
  await tx.execute(sql`
    with late as (
      select s.node_id, s.name from node_probes s where s.next_at > now() + ${LATEST_INTERVALS} * ${interval} for update skip locked)
    update node_probes s set next_at = now() + random() * ${interval}
    from late where s.node_id = late.node_id and s.name = late.name`);
}

/** A node with its present generation and address, which the hub compares with those at the claim of a probe before it stores the probe's result. */
export interface ProbedNode {
  readonly id: NodeId;
  readonly generation: number;
  readonly host: string | null;
  /** True for a host of an external system that is not in service yet, and that a probe's result may bring into service. */
  readonly mayComeIntoService: boolean;
}

/** Locks the nodes in one order, so that no generation and no address changes while results are written. */
export async function lockProbedNodes(tx: Tx, ids: readonly NodeId[]): Promise<ReadonlyMap<NodeId, ProbedNode>> {
  const { rows } = await tx.execute<{ id: NodeId; generation: number; host: string | null; waits: boolean }>(sql`
    select n.id, n.generation, n.host, n.onboarding_mode = 'external' and n.status in ('bootstrap_issued', 'enrolling') as waits
    from nodes n where n.id = any(${sql.param([...ids])}::uuid[]) and n.status <> 'deleted' order by n.id for no key update`);
  return new Map(
    rows.map(({ waits, ...node }): [NodeId, ProbedNode] => [node.id, { ...node, mayComeIntoService: waits }]),
  );
}

/**
 * Stores a probe's status and counts after a result. `storeCount` returns false if the probe was claimed again, changed or ended after the claim to
 * which the result belongs.
 */
export async function storeCount(
  tx: Tx,
  { nodeId, probe, claim }: Pick<ClaimedProbe, "nodeId" | "probe" | "claim">,
  counted: Pick<ClaimedProbe, "status" | "successes" | "failures">,
): Promise<boolean> {
  const rows = await tx
    .update(nodeProbes)
    .set(counted)
    .where(and(eq(nodeProbes.nodeId, nodeId), eq(nodeProbes.name, probe.name), eq(nodeProbes.claim, claim)))
    .returning({ name: nodeProbes.name });
  return rows.length > 0;
}
