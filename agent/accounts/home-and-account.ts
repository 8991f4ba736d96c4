import { unfinishedHome } from "../system/home.ts";
import { parseAccounts, parseGroups } from "./account-files.ts";
import { tool } from "./logins.ts";
import { removalLimits } from "./removal.ts";
import { cleaningStep } from "./step.ts";
import type { Revocation, RevokeStep } from "./tenant.ts";

/** The agent leaves a file system that is mounted below a tenant's home, because its files may belong to another computer. */
export async function removeHome(revocation: Revocation): Promise<RevokeStep> {
  const { system, tenant, plan } = revocation;
  const { home } = tenant;
  const mounts = (await system.mounts()).filter(({ path }) => path === home || path.startsWith(`${home}/`));
  const mounted = mounts.map(({ path, type }) => `${Buffer.from(path, "latin1").toString()} (${type})`).join(", ");
  const has = (await system.entry(home)) !== null;
  if (plan) {
    const message = has ? "The home would be removed." : "There is no home.";
    const warning = mounts.length === 0 ? "" : ` These mounts would prevent it: ${mounted}.`;
    return cleaningStep("home", home, "planned", `${message}${warning}`, { mounts: mounts.length });
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
  };
  if (removal.leftCount === 0 && (await system.entry(home)) === null)
    return cleaningStep("home", home, "ok", has ? "The home was removed." : "There was no home.", evidence);
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

/** A second read of `/etc/passwd` and `/etc/group` must show that the tenant's account and group are gone. */
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
