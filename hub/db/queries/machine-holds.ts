import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { and, eq, like, ne, sql } from "../orm.ts";
import { maasSites, nodeOnboardings, workflowSubjects, workflows } from "../schema/index.ts";
import type { Db, Tx } from "../tx.ts";
import { setOnboardingMachine } from "./onboardings.ts";
import { holdSubjects } from "./workflow-subjects.ts";

export interface MachineHolder {
  readonly kind: "onboarding" | "decommission";
  readonly id: WorkflowId;
  readonly siteName: string;
}

/**
 * Binds a machine to a workflow and returns null, or returns the other unfinished workflow that holds the machine. Within a site, the system id
 * identifies a machine. Across sites, only the system id and a BMC address together identify a machine.
 */
export async function holdMachine(
  tx: Tx,
  id: WorkflowId,
  { siteId, systemId, bmcs }: { readonly siteId: SiteId; readonly systemId: string; readonly bmcs: readonly string[] },
): Promise<MachineHolder | null> {
  const overAllSites = bmcs.map((bmc) => `machine-with-bmc:${systemId}/${bmc}`);
  const other = await holdSubjects(tx, id, [`machine:${siteId}/${systemId}`, ...overAllSites]);
  if (other !== null) return describeHolder(tx, other);
  await setOnboardingMachine(tx, id, systemId);
  return null;
}

/** The row of the workflow that holds the machine exists, because the same transaction has just read this workflow's id. */
async function describeHolder(tx: Tx, id: WorkflowId): Promise<MachineHolder> {
  const [holder] = await tx
    .select({
      kind: sql<
        MachineHolder["kind"]
      >`case when ${nodeOnboardings.onboardingId} is null then 'decommission' else 'onboarding' end`,
      id: workflows.id,
      siteName: maasSites.name,
    })
    .from(workflows)
    .leftJoin(nodeOnboardings, eq(nodeOnboardings.onboardingId, workflows.id))
    .innerJoin(maasSites, eq(maasSites.id, workflows.siteId))
    .where(eq(workflows.id, id));
  if (holder === undefined) throw new Error(`workflow ${id} holds a machine and has no site`);
  return holder;
}

export async function machinesHeldByOthers(db: Db, id: WorkflowId, siteId: SiteId): Promise<Set<string>> {
  const prefix = `machine:${siteId}/`;
  const rows = await db
    .select({ subject: workflowSubjects.subject })
    .from(workflowSubjects)
    .where(and(like(workflowSubjects.subject, `${prefix}%`), ne(workflowSubjects.workflowId, id)));
  return new Set(rows.map((row) => row.subject.slice(prefix.length)));
}
