import { messageOf } from "../message-of.ts";
import type { HostProcess } from "../system/processes.ts";
import type { System } from "../system/system.ts";
import { parseAccounts } from "./account-files.ts";
import { type Ended, type EndTiming, endProcesses, runningOf, survivorText } from "./end-processes.ts";
import { fuseRelease, unmountFuse } from "./fuse.ts";
import { cleaningStep, namesIn } from "./step.ts";
import { CUT_WRITE, SUDOERS_FOLDER, sudoersFile, uncheckedSudoersFile } from "./sudoers.ts";
import { ownsUid, type Revocation, type RevokeStep, type Tenant } from "./tenant.ts";

const TOOL_TIMEOUT_MS = 30_000;
const LINGER_FOLDER = "/var/lib/systemd/linger";

/**
 * Locks the tenant's account, and sets the account's expiry date to a date in the past. A locked password does not prevent a login by SSH key, for
 * which PAM checks only the expiry of the account.
 */
export async function lockAccount({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const { loginUser, uid } = tenant;
  const has = parseAccounts(await system.read("/etc/passwd")).some((one) => one.name === loginUser && one.uid === uid);
  if (plan)
    return cleaningStep("lock", loginUser, "planned", has ? "The account would be locked." : "There is no account.");
  if (!has) return cleaningStep("lock", loginUser, "ok", "There is no account to lock.");
  await tool(system, "usermod", ["--lock", "--expiredate", "1", loginUser]);
  return cleaningStep("lock", loginUser, "ok", "The account is locked and expired, so nobody can log in with it.");
}

export async function removeSudo({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const file = sudoersFile(tenant.allocationId);
  const left = (await system.list(SUDOERS_FOLDER)).filter((name) => CUT_WRITE.test(name));
  // An agent that was killed while it granted sudo rights may have left a sudoers file that `visudo` has not checked.
  const others = [uncheckedSudoersFile(tenant.allocationId), ...left.map((name) => `${SUDOERS_FOLDER}/${name}`)];
  const has = (await system.entry(file)) !== null;
  if (plan) return cleaningStep("sudo", file, "planned", has ? "The file would be removed." : "There is no such file.");
  for (const path of [file, ...others]) await system.remove(path);
  return cleaningStep("sudo", file, "ok", has ? "The sudo rights were removed." : "There were no sudo rights.");
}

/** A user with lingering has a systemd service manager that runs even without a login session of the user. */
export async function endLinger({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const file = `${LINGER_FOLDER}/${tenant.loginUser}`;
  const has = (await system.entry(file)) !== null;
  if (plan)
    return cleaningStep("linger", file, "planned", has ? "The file would be removed." : "The user does not linger.");
  // `loginctl` may refuse a user whose account is gone. The result of the step `linger` depends only on the removal of the user's linger file.
  const told =
    has && (await isSystemdRunning(system))
      ? await toolFault(system, "loginctl", ["disable-linger", tenant.loginUser])
      : null;
  await system.remove(file);
  const message = has ? "The user's service manager no longer starts without a login." : "The user did not linger.";
  return cleaningStep("linger", file, "ok", message, { lingered: has, ...(told === null ? {} : { loginctl: told }) });
}

/** After the step that ends login sessions, the cleaning step `processes` ends processes that outlive their login session. */
export async function endSessions({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const target = `user-${tenant.uid}.slice`;
  if (!(await isSystemdRunning(system)))
    return cleaningStep(
      "sessions",
      target,
      plan ? "planned" : "skipped",
      "systemd does not run, so the host has no login manager.",
    );
  const has = await system.isPresent(`/run/systemd/users/${tenant.uid}`);
  if (plan)
    return cleaningStep("sessions", target, "planned", has ? "The sessions would be ended." : "There is no session.");
  if (!has) return cleaningStep("sessions", target, "ok", "There is no session.", { logged_in: false });
  const uid = String(tenant.uid);
  const faults = [
    await toolFault(system, "loginctl", ["terminate-user", uid]),
    await toolFault(system, "systemctl", ["stop", `user@${uid}.service`]),
  ].filter((fault) => fault !== null);
  return cleaningStep(
    "sessions",
    target,
    faults.length === 0 ? "ok" : "failed",
    faults.length === 0 ? "The sessions and the service manager were ended." : faults.join(" "),
    { logged_in: true },
  );
}

/**
 * A process belongs to the tenant by one of its uids, by its login uid, or by the cgroup of the tenant's logins. A tenant's process keeps the
 * tenant's login uid even if it runs as root.
 */
export const isProcessOf =
  (tenant: Tenant) =>
  (process: HostProcess): boolean =>
    process.uids.some((uid) => ownsUid(tenant, uid)) ||
    process.loginUid === tenant.uid ||
    process.cgroups.some((line) => `${line}/`.includes(`/user.slice/user-${tenant.uid}.slice/`));

export interface EndedProcesses {
  readonly step: RevokeStep;
  readonly survivors: string | null;
}

export async function endTenantProcesses(revocation: Revocation, timing?: EndTiming): Promise<EndedProcesses> {
  const { system, tenant, plan, signal } = revocation;
  const target = `uid ${tenant.uid}`;
  const owns = isProcessOf(tenant);
  if (plan) {
    const found = await runningOf(system.processes, owns);
    const names = namesIn(found.map(({ comm, pid }) => `${comm} (${pid})`));
    const message = found.length === 0 ? "There is no process." : `These processes would be ended: ${names}.`;
    return { step: cleaningStep("processes", target, "planned", message, { found: found.length }), survivors: null };
  }
  const isOwnUid = (uid: number): boolean => ownsUid(tenant, uid);
  const release = fuseRelease(system);
  const ownership = { owns, isOwnUid, slice: tenant.uid, release: () => release(isOwnUid) };
  const ended: Ended = await endProcesses(system.processes, ownership, signal, timing);
  const evidence = { found: ended.found, killed: ended.killed, survivors: ended.survivors.length };
  if (ended.survivors.length === 0) {
    // FUSE mounts whose servers have ended would make later cleaning steps fail, because these steps name each mount that is left in their folders.
    const fuse = await unmountFuse(system, isOwnUid, signal);
    const faults = fuse.faults.length === 0 ? "" : ` FUSE mounts of the tenant are left: ${namesIn(fuse.faults, 3)}`;
    const message = `No process of the tenant runs.${faults}`;
    const step = cleaningStep("processes", target, "ok", message, { ...evidence, fuse_mounts: fuse.found });
    return { step, survivors: null };
  }
  const limit = ended.limit === null ? "" : ` ${ended.limit}`;
  const survivors = `${survivorText(system.processes, ended.survivors)}.${limit}`;
  return {
    step: cleaningStep("processes", target, "failed", `These processes did not end: ${survivors}`, evidence),
    survivors,
  };
}

export const isSystemdRunning = (system: System): Promise<boolean> => system.isPresent("/run/systemd/system");

export async function tool(system: System, name: string, args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await system.run(name, args, TOOL_TIMEOUT_MS);
  if (exitCode !== 0) throw new Error(`${name} ended with status ${exitCode}: ${stderr.slice(-400)}`);
}

export async function toolFault(system: System, name: string, args: readonly string[]): Promise<string | null> {
  try {
    await tool(system, name, args);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}
