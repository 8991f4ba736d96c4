import type { SiteId, WorkflowId } from "../../../shared/ids.ts";
import { eq } from "../orm.ts";
import { workflowSubjects } from "../schema/index.ts";
import type { Tx } from "../tx.ts";

/** The subject that an onboarding holds until it is over. It prevents two onboardings from working on one host. */
export const hostSubject = (siteId: SiteId, hostname: string): string => `host:${siteId}/${hostname}`;

/** The unfinished onboarding of the host; null if there is none. */
export async function onboardingOfHost(tx: Tx, siteId: SiteId, hostname: string): Promise<WorkflowId | null> {
  const [holder] = await tx
    .select({ id: workflowSubjects.workflowId })
    .from(workflowSubjects)
    .where(eq(workflowSubjects.subject, hostSubject(siteId, hostname)));
  return holder?.id ?? null;
}
