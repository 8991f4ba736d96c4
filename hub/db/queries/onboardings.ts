import type { Onboarding, OnboardingDetail } from "../../../shared/api/onboardings.ts";
import type { BatchId, NodeId, SiteId, WorkflowId } from "../../../shared/ids.ts";
import type { OnboardingStage, StatusFilter } from "../../../shared/workflow-status.ts";
import { and, desc, eq, type SQL } from "../orm.ts";
import {
  type MaasSite,
  type MaasSiteProfile,
  maasSiteProfiles,
  maasSites,
  type NodeOnboarding,
  nodeOnboardings,
  type Sku,
  skus,
  type Workflow,
  workflows,
} from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { isWithin, type Reach } from "./reach.ts";
import { listStageEvents } from "./workflow-events.ts";
import { hasStatus, requestedAtText, requestedBefore, toProgress, toStageEvent } from "./workflow-views.ts";

/** The caller of `insertOnboardings` has already written the rows of `workflows` with the onboardings' ids. */
export async function insertOnboardings(tx: Tx, rows: readonly (typeof nodeOnboardings.$inferInsert)[]): Promise<void> {
  await tx.insert(nodeOnboardings).values([...rows]);
}

export async function setOnboardingMachine(tx: Tx, id: WorkflowId, maasSystemId: string): Promise<void> {
  await tx.update(nodeOnboardings).set({ maasSystemId }).where(eq(nodeOnboardings.onboardingId, id));
}

type Row = { onboarding: NodeOnboarding; workflow: Workflow };

const columns = { onboarding: nodeOnboardings, workflow: workflows };

/** Makes the API's view of an onboarding from the request and the workflow's row (lifecycle 4.2.1). */
function toOnboarding({ onboarding, workflow }: Row): Onboarding {
  return {
    onboarding_id: onboarding.onboardingId,
    batch_id: onboarding.batchId,
    node_id: onboarding.nodeId,
    site_id: onboarding.siteId,
    profile_id: onboarding.profileId,
    sku_id: onboarding.skuId,
    hostname: onboarding.hostname,
    ipmi_ip: onboarding.ipmiIp,
    pxe_mac: onboarding.pxeMac,
    maas_system_id: onboarding.maasSystemId,
    location: { room: onboarding.room, rack: onboarding.rack, unit: onboarding.unit },
    ...toProgress(workflow),
    current_stage: workflow.stage as OnboardingStage,
  };
}

export async function readOnboarding(db: Db | Tx, id: WorkflowId): Promise<OnboardingDetail | null> {
  const [row] = await db
    .select(columns)
    .from(nodeOnboardings)
    .innerJoin(workflows, eq(workflows.id, nodeOnboardings.onboardingId))
    .where(eq(nodeOnboardings.onboardingId, id));
  if (row === undefined) return null;
  const events = await listStageEvents(db, id);
  return { ...toOnboarding(row), events: events.map(toStageEvent) };
}

export interface OnboardingFilter {
  readonly batchId?: BatchId | undefined;
  readonly siteId?: SiteId | undefined;
  readonly nodeId?: NodeId | undefined;
  readonly status?: StatusFilter | undefined;
  readonly hostname?: string | undefined;
  readonly reach: Reach;
}

export async function listOnboardings(
  db: Db | Tx,
  filter: OnboardingFilter,
  page: { readonly before: readonly [string, string] | null; readonly limit: number },
): Promise<{ onboarding: Onboarding; at: string }[]> {
  const conditions: (SQL | undefined)[] = [
    filter.batchId === undefined ? undefined : eq(nodeOnboardings.batchId, filter.batchId),
    filter.siteId === undefined ? undefined : eq(nodeOnboardings.siteId, filter.siteId),
    filter.nodeId === undefined ? undefined : eq(nodeOnboardings.nodeId, filter.nodeId),
    filter.status === undefined ? undefined : hasStatus(filter.status),
    filter.hostname === undefined ? undefined : eq(nodeOnboardings.hostname, filter.hostname),
    isWithin(filter.reach, { site: nodeOnboardings.siteId }),
    page.before === null ? undefined : requestedBefore(page.before),
  ];
  const rows = await db
    .select({ ...columns, at: requestedAtText })
    .from(nodeOnboardings)
    .innerJoin(workflows, eq(workflows.id, nodeOnboardings.onboardingId))
    .where(and(...conditions))
    .orderBy(desc(workflows.requestedAt), desc(workflows.id))
    .limit(page.limit);
  return rows.map((row) => ({ onboarding: toOnboarding(row), at: row.at }));
}

/** One SQL statement reads all rows that the stages of an onboarding need. */
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
