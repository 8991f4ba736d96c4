import { isWithin } from "../system/mounts.ts";
import { withoutSubIds } from "./account-files.ts";
import { isSystemdRunning, toolFault } from "./logins.ts";
import { removalLimits } from "./removal.ts";
import { cleaningStep, namesIn } from "./step.ts";
import type { Revocation, RevokeStep } from "./tenant.ts";

const MAIL_FOLDERS = ["/var/mail", "/var/spool/mail"];
const SUB_ID_FILES = ["/etc/subuid", "/etc/subgid"];

/** Removes the tenant's folder `/run/user/UID` with all mounts in it, which only the tenant's programs can have made. */
export async function removeRuntimeFolder(revocation: Revocation): Promise<RevokeStep> {
  const { system, tenant, plan } = revocation;
  const folder = `/run/user/${tenant.uid}`;
  const mountsThere = async (): Promise<string[]> =>
    (await system.mounts()).map(({ path }) => path).filter((path) => isWithin(path, folder));
  const mounts = await mountsThere();
  const evidence = { mounts: mounts.length };
  // Even root may be refused access to a tenant's FUSE mount, and an access to it may hang forever. If the list of mounts has a mount in the folder
  // `/run/user/UID`, the agent knows without an access that the folder exists.
  const has = mounts.length > 0 || (await system.entry(folder)) !== null;
  if (plan)
    return cleaningStep(
      "runtime_folder",
      folder,
      "planned",
      has ? "The folder would be removed." : "There is no such folder.",
      evidence,
    );
  if (mounts.length > 0 && (await isSystemdRunning(system)))
    await toolFault(system, "systemctl", ["stop", `user-runtime-dir@${tenant.uid}.service`]);
  const faults: string[] = [];
  // The kernel lists mounts in the order in which they were made, and the agent unmounts the newest mount first.
  for (const path of (await mountsThere()).reverse()) {
    const fault = await toolFault(system, "umount", [
      "--no-canonicalize",
      "--",
      Buffer.from(path, "latin1").toString(),
    ]);
    if (fault !== null) faults.push(fault);
  }
  const removal = await system.removeConfined(folder, removalLimits(revocation));
  faults.push(...removal.left.map(({ path, reason }) => `${path}: ${reason}`));
  const isMounted = (await mountsThere()).includes(folder);
  if (isMounted || (await system.entry(folder)) !== null)
    return cleaningStep(
      "runtime_folder",
      folder,
      "failed",
      `The folder is still there: ${namesIn(faults, 3)}`,
      evidence,
    );
  return cleaningStep(
    "runtime_folder",
    folder,
    "ok",
    has ? "The folder was removed." : "There was no such folder.",
    evidence,
  );
}

export async function removeMail(revocation: Revocation): Promise<RevokeStep> {
  const { system, tenant, plan } = revocation;
  const paths = MAIL_FOLDERS.map((folder) => `${folder}/${tenant.loginUser}`);
  const entries = await Promise.all(paths.map((path) => system.entry(path)));
  const present = paths.filter((_path, index) => entries[index] !== null);
  const target = paths[0] ?? "mail";
  const evidence = { found: present.length };
  if (plan)
    return cleaningStep(
      "mail",
      target,
      "planned",
      present.length > 0 ? "The mail would be removed." : "There is no mail.",
      evidence,
    );
  const left: string[] = [];
  const limits = removalLimits(revocation);
  for (const path of present) {
    const removal = await system.removeConfined(path, limits);
    left.push(...removal.left.map((one) => `${one.path}: ${one.reason}`));
  }
  return left.length === 0
    ? cleaningStep("mail", target, "ok", present.length > 0 ? "The mail was removed." : "There was no mail.", evidence)
    : cleaningStep("mail", target, "failed", `The mail could not be removed: ${namesIn(left, 3)}`, evidence);
}

/** Removes a tenant's lines from `/etc/subuid` and `/etc/subgid`, also the lines with the tenant's uid, which `userdel` leaves. */
export async function removeSubIds({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const target = SUB_ID_FILES.join(", ");
  let lines = 0;
  for (const file of SUB_ID_FILES) {
    const text = await system.read(file);
    if (text === null) continue;
    const rest = withoutSubIds(text, tenant.loginUser, tenant.uid);
    if (rest === text) continue;
    lines += text.split("\n").length - rest.split("\n").length;
    if (!plan) await system.write(file, rest, 0o644);
  }
  const message = plan ? `${lines} lines would be removed.` : `${lines} lines were removed.`;
  return cleaningStep("sub_ids", target, plan ? "planned" : "ok", message, { lines });
}
