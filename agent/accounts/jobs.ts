import type { System } from "../system/system.ts";
import { cleaningStep, namesIn } from "./step.ts";
import { ownsUid, type Revocation, type RevokeStep, type Tenant } from "./tenant.ts";

const CRON_FOLDERS = ["/var/spool/cron/crontabs", "/var/spool/cron"];
/** The folders of jobs of `at` and of their output: two on Debian and Ubuntu, and two on Red Hat. */
const AT_FOLDERS = ["/var/spool/cron/atjobs", "/var/spool/cron/atspool", "/var/spool/at", "/var/spool/at/spool"];

export const removeCrontabs = (revocation: Revocation): Promise<RevokeStep> =>
  removeJobs(revocation, "cron", CRON_FOLDERS, (name, { loginUser }) => name === loginUser);

export const removeAtJobs = (revocation: Revocation): Promise<RevokeStep> =>
  removeJobs(revocation, "at", AT_FOLDERS, () => false);

async function removeJobs(
  { system, tenant, plan }: Revocation,
  step: "cron" | "at",
  folders: readonly string[],
  isNamed: (name: string, tenant: Tenant) => boolean,
): Promise<RevokeStep> {
  const files = await jobsOf(system, tenant, folders, isNamed);
  const target = folders[0] ?? step;
  const evidence = { files: files.length };
  if (files.length === 0)
    return cleaningStep(step, target, plan ? "planned" : "ok", "There is no job of the tenant.", evidence);
  if (plan) return cleaningStep(step, target, "planned", `These files would be removed: ${namesIn(files)}.`, evidence);
  for (const file of files) await system.remove(file);
  const left = await jobsOf(system, tenant, folders, isNamed);
  return left.length === 0
    ? cleaningStep(step, target, "ok", `These files were removed: ${namesIn(files)}.`, evidence)
    : cleaningStep(step, target, "failed", `These files could not be removed: ${namesIn(left)}.`, evidence);
}

async function jobsOf(
  system: System,
  tenant: Tenant,
  folders: readonly string[],
  isNamed: (name: string, tenant: Tenant) => boolean,
): Promise<string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    for (const name of await system.list(folder)) {
      const entry = await system.entry(`${folder}/${name}`);
      if (entry === null || entry.kind === "folder") continue;
      if (isNamed(name, tenant) || ownsUid(tenant, entry.uid)) found.push(`${folder}/${name}`);
    }
  }
  return found;
}
