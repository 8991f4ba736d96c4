import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, inArray, like, ne, or, sql } from "../orm.ts";
import { maasSites, nodeDecommissions, nodeOnboardings, workflowSubjects } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { setOnboardingMachine } from "./onboardings.ts";
import { insertSubjects } from "./workflow-subjects.ts";

/** The workflow that holds a machine: an onboarding, or the decommission that releases the machine of a removed node. */
export interface MachineHolder {
  readonly kind: "onboarding" | "decommission";
  readonly id: WorkflowId;
  readonly siteName: string;
}

/**
 * Binds the machine to the workflow and returns null, or returns another unfinished workflow that holds the machine. Within the site the system id
 * identifies the machine. Across sites the system id together with each possible BMC address identifies it.
 */
export async function holdMachine(
  tx: Tx,
  id: WorkflowId,
  { siteId, systemId, bmcs }: { readonly siteId: SiteId; readonly systemId: string; readonly bmcs: readonly string[] },
): Promise<MachineHolder | null> {
  const overAllSites = bmcs.map((bmc) => `machine-with-bmc:${systemId}/${bmc}`);
  const subjects = [`machine:${siteId}/${systemId}`, ...overAllSites];
  await insertSubjects(
    tx,
    subjects.map((subject) => ({ subject, workflowId: id })),
  );
  const [holder] = await tx
    .select({
      kind: sql<
        MachineHolder["kind"]
      >`case when ${nodeOnboardings.onboardingId} is null then 'decommission' else 'onboarding' end`,
      id: workflowSubjects.workflowId,
      siteName: maasSites.name,
    })
    .from(workflowSubjects)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflowSubjects.workflowId))
    .leftJoin(nodeDecommissions, eq(nodeDecommissions.decommissionId, workflowSubjects.workflowId))
    .innerJoin(maasSites, or(eq(maasSites.id, nodeOnboardings.siteId), eq(maasSites.id, nodeDecommissions.siteId)))
    .where(and(inArray(workflowSubjects.subject, subjects), ne(workflowSubjects.workflowId, id)))
    .limit(1);
  if (holder !== undefined) return holder;
  await setOnboardingMachine(tx, id, systemId);
  return null;
}

/** System ids of the site's machines that other workflows hold. */
export async function machinesHeldByOthers(db: Db, id: WorkflowId, siteId: SiteId): Promise<Set<string>> {
  const prefix = `machine:${siteId}/`;
  const rows = await db
    .select({ subject: workflowSubjects.subject })
    .from(workflowSubjects)
    .where(and(like(workflowSubjects.subject, `${prefix}%`), ne(workflowSubjects.workflowId, id)));
  return new Set(rows.map((row) => row.subject.slice(prefix.length)));
}
