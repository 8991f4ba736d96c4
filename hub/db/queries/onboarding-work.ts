import type { NodeId, ProfileId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import { lockUntilCommit } from "../advisory-locks.ts";
import { and, eq, inArray, isNull, like, type SQL, type SQLWrapper, sql } from "../orm.ts";
import {
  type AgentSession,
  agentSessions,
  enrollmentTokens,
  type MaasPowerCredentialOverride,
  type MaasRoceAssignment,
  type MaasSite,
  type MaasSiteProfile,
  maasPowerCredentialOverrides,
  maasRoceAssignments,
  maasSiteProfiles,
  maasSites,
  maasSiteWatches,
  type NodeOnboarding,
  nodeCertificates,
  nodeOnboardings,
  nodes,
  type Sku,
  skus,
  type Workflow,
  workflowSubjects,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { wakeWorkflows } from "./workflow-wakes.ts";
import { ADMITTED } from "./workflows.ts";

/** The rows that every stage of an onboarding works with, read afresh in one statement. */
export interface OnboardingRows {
  readonly onboarding: NodeOnboarding;
  readonly site: MaasSite;
  readonly profile: MaasSiteProfile;
  readonly sku: Sku;
}

export async function readOnboardingRows(db: Db | Tx, id: WorkflowId): Promise<OnboardingRows | null> {
  const [rows] = await db
    .select({ onboarding: nodeOnboardings, site: maasSites, profile: maasSiteProfiles, sku: skus })
    .from(nodeOnboardings)
    .innerJoin(maasSites, eq(maasSites.id, nodeOnboardings.siteId))
    .innerJoin(maasSiteProfiles, eq(maasSiteProfiles.id, nodeOnboardings.profileId))
    .innerJoin(skus, eq(skus.id, nodeOnboardings.skuId))
    .where(eq(nodeOnboardings.onboardingId, id));
  return rows ?? null;
}

/**
 * Admission (lifecycle 4.4), over all hubs: of each profile at most `batch_max_parallel` onboardings run at once, and on its site together at most the
 * largest of these numbers among the profiles that have any at work or waiting there. They come in one order for the whole site; one whose profile is
 * full is passed over, so that it keeps its turn and none behind it waits for that profile. The site's row is locked by a statement of its own, so that
 * the count sees what another hub has just admitted. Returns the admitted rows.
 */
export async function admitOnboardings(tx: Tx, kind: string): Promise<Workflow[]> {
  const locked = await tx
    .select({ id: maasSites.id })
    .from(maasSites)
    .where(
      sql`exists (select 1 from ${workflows} w where w.site_id = ${maasSites.id} and w.kind = ${kind} and w.status = 'pending')`,
    )
    .for("no key update", { skipLocked: true });
  if (locked.length === 0) return [];
  const sites = sql.param(locked.map((site) => site.id));
  return tx
    .update(workflows)
    .set(ADMITTED)
    .where(and(eq(workflows.status, "pending"), sql`${workflows.id} in (${admissible(kind, sites)})`))
    .returning();
}

/** Those at work are numbered before those that wait, so a number is how many there would be with this one. */
const admissible = (kind: string, sites: SQLWrapper): SQL => sql`
  with at_hand as (
    select w.id, w.site_id, w.requested_at, w.status = 'pending' as waits, o.profile_id, p.batch_max_parallel as most
    from workflows w
    join node_onboardings o on o.onboarding_id = w.id
    join maas_site_profiles p on p.id = o.profile_id
    where w.kind = ${kind} and w.status in ('pending', 'running', 'compensating') and w.site_id = any(${sites}::uuid[])),
  of_profile as (
    select *, max(most) over (partition by site_id) as most_of_site,
      row_number() over (partition by profile_id order by waits, requested_at, id) as place
    from at_hand),
  of_site as (
    select *, row_number() over (partition by site_id order by waits, requested_at, id) as place_of_site
    from of_profile where not waits or place <= most)
  select id from of_site where waits and place_of_site <= most_of_site`;

const deploySlot = (profileId: ProfileId): string => `deploy-slot:${profileId}/`;

/**
 * Takes one of the profile's `deploy_max_parallel` places, or keeps the one held. False: all are taken, ask again later. The lock lets the hosts of a
 * batch, who come at the same moment, find one free place after the other: without it all would find the first one, and all but one none.
 */
export async function takeDeploySlot(tx: Tx, id: WorkflowId, profileId: ProfileId, most: number): Promise<boolean> {
  const prefix = deploySlot(profileId);
  await lockUntilCommit(tx, "deploy_slots", prefix);
  await tx.execute(sql`
    insert into workflow_subjects (subject, workflow_id)
    select ${prefix} || n, ${id}::uuid from generate_series(1, ${most}::int) n
    where not exists (select 1 from workflow_subjects s where s.subject = ${prefix} || n)
      and not exists (select 1 from workflow_subjects s where s.workflow_id = ${id}::uuid and s.subject like 'deploy-slot:%')
    order by n limit 1
    on conflict do nothing`);
  const held = await tx
    .select({ subject: workflowSubjects.subject })
    .from(workflowSubjects)
    .where(and(eq(workflowSubjects.workflowId, id), like(workflowSubjects.subject, `${prefix}%`)));
  return held.length > 0;
}

/** Key on which a deploy waits for a free place. */
export const deploySlotKey = (profileId: ProfileId): string => deploySlot(profileId);

export async function releaseDeploySlot(tx: Tx, id: WorkflowId): Promise<void> {
  const freed = await tx
    .delete(workflowSubjects)
    .where(and(eq(workflowSubjects.workflowId, id), like(workflowSubjects.subject, "deploy-slot:%")))
    .returning({ subject: workflowSubjects.subject });
  await wakeWorkflows(
    tx,
    freed.map(({ subject }) => subject.slice(0, subject.lastIndexOf("/") + 1)),
  );
}

/** What an onboarding holds until it is over, so that two can never work on one host. */
export const hostSubject = (siteId: SiteId, hostname: string): string => `host:${siteId}/${hostname}`;

/** The onboarding of the host that is not over; null when there is none. */
export async function onboardingOfHost(tx: Tx, siteId: SiteId, hostname: string): Promise<WorkflowId | null> {
  const [holder] = await tx
    .select({ id: workflowSubjects.workflowId })
    .from(workflowSubjects)
    .where(eq(workflowSubjects.subject, hostSubject(siteId, hostname)));
  return holder?.id ?? null;
}

export async function listPowerOverrides(db: Db, siteId: SiteId): Promise<MaasPowerCredentialOverride[]> {
  return db
    .select()
    .from(maasPowerCredentialOverrides)
    .where(and(eq(maasPowerCredentialOverrides.siteId, siteId), eq(maasPowerCredentialOverrides.status, "active")));
}

export async function listRoceOfHost(db: Db, siteId: SiteId, hostname: string): Promise<MaasRoceAssignment[]> {
  return db
    .select()
    .from(maasRoceAssignments)
    .where(and(eq(maasRoceAssignments.siteId, siteId), eq(maasRoceAssignments.hostname, hostname)))
    .orderBy(maasRoceAssignments.interface);
}

/** When the site's watcher last asked MAAS; null before its first time. */
export async function readLastPoll(
  db: Db,
  siteId: SiteId,
): Promise<{ readonly at: Date | null; readonly errorCode: string | null }> {
  const [watch] = await db
    .select({ at: maasSiteWatches.lastPollAt, errorCode: maasSiteWatches.lastErrorCode })
    .from(maasSiteWatches)
    .where(eq(maasSiteWatches.siteId, siteId));
  return watch ?? { at: null, errorCode: null };
}

/** Begins a new provisioning attempt of the node; older tokens, certificates and signals belong to older generations. */
export async function nextGeneration(tx: Tx, nodeId: NodeId): Promise<number> {
  const [row] = await tx
    .update(nodes)
    .set({ generation: sql`${nodes.generation} + 1`, updatedAt: sql`now()` })
    .where(eq(nodes.id, nodeId))
    .returning({ generation: nodes.generation });
  if (row === undefined) throw new Error(`node ${nodeId} is gone`);
  return row.generation;
}

/** The node's session if it is open and of this generation. */
export async function readOpenSession(db: Db | Tx, nodeId: NodeId, generation: number): Promise<AgentSession | null> {
  const [session] = await db
    .select()
    .from(agentSessions)
    .where(
      and(eq(agentSessions.nodeId, nodeId), eq(agentSessions.generation, generation), eq(agentSessions.state, "open")),
    );
  return session ?? null;
}

export async function setNodeHost(tx: Tx, nodeId: NodeId, host: string): Promise<void> {
  await tx.update(nodes).set({ host, updatedAt: sql`now()` }).where(eq(nodes.id, nodeId));
}

/**
 * Gives an expired, unused token of the generation another life. The host carries the token in its user-data already, so a new one could
 * not reach it; only the end of the old one can be moved. True when one was extended.
 */
export async function extendExpiredToken(
  tx: Tx,
  nodeId: NodeId,
  generation: number,
  ttlSeconds: number,
): Promise<boolean> {
  const rows = await tx
    .update(enrollmentTokens)
    .set({ expiresAt: sql`now() + make_interval(secs => ${ttlSeconds})` })
    .where(unusedToken(nodeId, generation, sql`${enrollmentTokens.expiresAt} <= now()`))
    .returning({ id: enrollmentTokens.id });
  return rows.length > 0;
}

export async function hasExpiredToken(db: Db, nodeId: NodeId, generation: number): Promise<boolean> {
  const rows = await db
    .select({ id: enrollmentTokens.id })
    .from(enrollmentTokens)
    .where(unusedToken(nodeId, generation, sql`${enrollmentTokens.expiresAt} <= now()`));
  return rows.length > 0;
}

const unusedToken = (nodeId: NodeId, generation: number, expired: ReturnType<typeof sql>) =>
  and(
    eq(enrollmentTokens.nodeId, nodeId),
    eq(enrollmentTokens.generation, generation),
    isNull(enrollmentTokens.usedAt),
    isNull(enrollmentTokens.revokedAt),
    expired,
  );

/** Removes the record of a node that never enrolled; one that did is kept, and taken up again by the host's next onboarding. */
export async function deleteNodeThatNeverEnrolled(tx: Tx, nodeId: NodeId): Promise<boolean> {
  const rows = await tx
    .delete(nodes)
    .where(
      and(
        eq(nodes.id, nodeId),
        inArray(nodes.status, ["enrolling"]),
        sql`not exists (select 1 from ${nodeCertificates} c where c.node_id = ${nodes.id})`,
      ),
    )
    .returning({ id: nodes.id });
  return rows.length > 0;
}
