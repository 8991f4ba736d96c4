import { unfinishedHome } from "../system/home.ts";
import { isWithin } from "../system/mounts.ts";
import { parseAccounts, parseGroups } from "./account-files.ts";
import { removableFuse } from "./fuse-mounts.ts";
import { tool } from "./logins.ts";
import { removalLimits } from "./removal.ts";
import { cleaningStep } from "./step.ts";
import { ownsUid, type Revocation, type RevokeStep } from "./tenant.ts";
import { type RemovedJournals, removeUserJournals } from "./user-journals.ts";

/**
 * Removes the tenant's home, and the journals in which journald keeps the messages of the tenant's programs. The agent leaves a file system that
 * the site mounted below a tenant's home, because its files may belong to another computer.
 */
export async function removeHome(revocation: Revocation): Promise<RevokeStep> {
  const { system, tenant, plan } = revocation;
  const { home } = tenant;
  const all = await system.mounts();
  // In a dry run (`plan`), the tenant's own FUSE mounts do not count as obstacles to the removal of the home, because the step `processes` unmounts
  // them.
  const own = plan ? removableFuse(all, home, (uid) => ownsUid(tenant, uid)) : [];
  const mounts = all.filter((mount) => isWithin(mount.path, home) && !own.includes(mount));
  const mounted = mounts.map(({ path, type }) => `${Buffer.from(path, "latin1").toString()} (${type})`).join(", ");
  // Even root may be refused access to a tenant's FUSE mount, and an access to it may hang forever. If the list of mounts has a mount in the home
  // folder, the agent knows without an access that the folder exists.
  const has = mounts.length + own.length > 0 || (await system.entry(home)) !== null;
  const journals = await removeUserJournals(revocation);
  if (plan) {
    const message = has ? "The home would be removed." : "There is no home.";
    const more = journals.found === 0 ? "" : ` ${journals.found} journals of the user would be removed.`;
    const warning = mounts.length === 0 ? "" : ` These mounts would prevent it: ${mounted}.`;
    const evidence = { mounts: mounts.length, journals: journals.found };
    return cleaningStep("home", home, "planned", `${message}${more}${warning}`, evidence);
  }
  const limits = removalLimits(revocation);
  // An agent that was killed during the making of the account may have left an unfinished home folder.
  await system.removeConfined(unfinishedHome(home), limits);
  const removal = await system.removeConfined(home, limits);
  const evidence = {
    removed: removal.removed,
    unlocked: removal.unlocked,
    mounts: mounts.length,
    left: removal.leftCount,
    journals: journals.found,
  };
  if (removal.leftCount === 0 && (await system.entry(home)) === null) return endOfHome(home, has, journals, evidence);
  const left = removal.left
    .slice(0, 4)
    .map(({ path, reason }) => `${path}: ${reason}`)
    .join("; ");
  const first = removal.left[0]?.path ?? home;
  return cleaningStep("home", home, "failed", `The home is not completely removed. ${left}`, {
    ...evidence,
    first_left: first,
  });
}

function endOfHome(
  home: string,
  had: boolean,
  { found, left }: RemovedJournals,
  evidence: RevokeStep["evidence"],
): RevokeStep {
  const message = had ? "The home was removed." : "There was no home.";
  if (left.length > 0) {
    const text = `${message} Journals of the user are left: ${left.slice(0, 3).join("; ")}`;
    return cleaningStep("home", home, "failed", text, { ...evidence, first_left: left[0] ?? home });
  }
  const more = found === 0 ? "" : ` ${found} journals of the user were removed.`;
  return cleaningStep("home", home, "ok", `${message}${more}`, evidence);
}

/** After the removal of a tenant's account, a second read of `/etc/passwd` and `/etc/group` must show that the account and its group are gone. */
export async function removeAccount({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const { loginUser, uid } = tenant;
  const hasAccount = async (): Promise<boolean> =>
    parseAccounts(await system.read("/etc/passwd")).some((one) => one.name === loginUser);
  const hasGroup = async (): Promise<boolean> =>
    parseGroups(await system.read("/etc/group")).some(({ name, gid }) => name === loginUser && gid === uid);
  const had = await hasAccount();
  if (plan)
    return cleaningStep(
      "account",
      loginUser,
      "planned",
      had ? "The account would be removed." : "There is no account.",
      { uid },
    );
  if (had) await tool(system, "userdel", [loginUser]);
  if (await hasGroup()) await tool(system, "groupdel", [loginUser]);
  if ((await hasAccount()) || (await hasGroup()))
    throw new Error(`${loginUser} is still in /etc/passwd or /etc/group.`);
  return cleaningStep("account", loginUser, "ok", had ? "The account was removed." : "There was no account.", { uid });
}
