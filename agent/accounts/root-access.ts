import { MOST_ROOT_WAYS } from "../../shared/tasks/allocation-revoke-user.ts";
import type { System } from "../system/system.ts";
import { parseAccounts, parseGroups } from "./account-files.ts";
import { waysByEngines } from "./engine-sockets.ts";
import { waysByContainers } from "./privileged-containers.ts";
import { cleaningStep } from "./step.ts";
import type { RevokeStep, Tenant } from "./tenant.ts";

const TOOL_TIMEOUT_MS = 30_000;
const SUDO = "/usr/bin/sudo";

/**
 * Groups whose members can get the rights of root: through sudo, containers, virtual machines, raw disks, kernel memory or password hashes.
 * `ROOT_GROUPS` has the group names that the packages of Debian and Ubuntu use.
 */
const ROOT_GROUPS: ReadonlySet<string> = new Set([
  "root",
  "sudo",
  "wheel",
  "admin",
  "docker",
  "lxd",
  "incus-admin",
  "libvirt",
  "microk8s",
  "snap_microk8s",
  "disk",
  "kmem",
  "shadow",
]);

/**
 * Returns how the tenant's account can get the rights of root now (decision C4), for example `group docker`. If the agent finds no way to get the
 * rights of root, or if the account is gone, the returned list is empty. A tenant with the rights of root can have hidden how it got them, so an
 * empty list does not prove that the tenant could not get them.
 */
export async function waysToRoot(system: System, tenant: Tenant): Promise<string[]> {
  const { loginUser, uid } = tenant;
  const account = parseAccounts(await system.read("/etc/passwd")).find((one) => one.name === loginUser);
  if (account === undefined || account.uid !== uid) return [];
  const groups = parseGroups(await system.read("/etc/group")).filter(
    ({ gid, members }) => gid === account.gid || members.includes(loginUser),
  );
  const ways = groups.filter(({ name, gid }) => gid === 0 || ROOT_GROUPS.has(name)).map(({ name }) => `group ${name}`);
  const rules = await sudoRules(system, loginUser);
  if (rules !== null) ways.push(rules);
  const gids = new Set([account.gid, ...groups.map(({ gid }) => gid)]);
  return [...ways, ...(await waysByEngines(system, { uid, gids })), ...(await waysByContainers(system, tenant))];
}

/**
 * If sudo cannot read the rules for the account, the account counts as able to get the rights of root, because the rules may have allowed everything.
 */
async function sudoRules(system: System, loginUser: string): Promise<"sudo rules" | "unreadable sudo rules" | null> {
  if ((await system.entry(SUDO)) === null) return null;
  const { stdout } = await system.run("sudo", ["-n", "-l", "-U", loginUser], TOOL_TIMEOUT_MS);
  if (/ may run the following commands /.test(stdout)) return "sudo rules";
  return / is not allowed to run sudo /.test(stdout) ? null : "unreadable sudo rules";
}

/** Joins the ways to get the rights of root that an earlier run of the revocation recorded with those that the present run found. */
export const allWays = (before: readonly string[], now: readonly string[]): string[] =>
  [...new Set([...before, ...now])].slice(0, MOST_ROOT_WAYS);

/** The cleaning step `root_access` only reports and changes nothing, so a dry run (`plan: true`) has its result too. */
export function rootAccessStep({ loginUser }: Tenant, ways: readonly string[], plan: boolean): RevokeStep {
  const had = ways.length > 0;
  const message = had
    ? `The account could get the rights of root: ${ways.join(", ")}.`
    : "The agent found no way in which the account could get the rights of root.";
  return cleaningStep("root_access", loginUser, plan ? "planned" : "ok", message, {
    ways: had ? ways.join(", ") : null,
  });
}
