import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../message-of.ts";
import { KEY_SETTINGS, KEY_USERS, KEYS_HIDDEN, parseKeyUsers } from "../system/key-users.ts";
import type { System } from "../system/system.ts";
import { cleaningStep } from "./step.ts";
import { ownsUid, type Revocation, type RevokeStep, type Tenant } from "./tenant.ts";

const TOOL_TIMEOUT_MS = 30_000;
/** The most kernel keys that one run of `removeOf` removes; the kernel's usual quota of keys of one user is smaller. */
const MOST_KEYS = 400;
const COLLECTED_WITHIN_MS = 10_000;
const READ_EVERY_MS = 100;

/** The rights mask that gives all rights on a keyring to its owner and to a process that possesses it. */
const ALL_RIGHTS = "0x3f3f0000";
/**
 * Removes the persistent keyring of the uid in `$1`. A process may change a persistent keyring only while the keyring is linked in the process's own
 * session keyring, so the three commands share a session keyring, which the first `keyctl` makes for them.
 */
const REMOVE_PERSISTENT = 'id=$(keyctl get_persistent @s "$1") && keyctl clear "$id" && keyctl invalidate "$id"';

/**
 * Removes the keys and keyrings that the kernel keeps for the tenant's uid after the tenant's last process has ended: the user keyring, the user's
 * session keyring, and the persistent keyring, which lasts three days and may hold Kerberos tickets. The next account with the same uid would own
 * every kernel key that `removeKeyrings` leaves.
 */
export async function removeKeyrings(revocation: Revocation): Promise<RevokeStep> {
  const { system, tenant, plan, signal } = revocation;
  const target = `uid ${tenant.uid}`;
  const before = await tenantKeys(system, tenant);
  if (before === null) return cleaningStep("keyrings", target, plan ? "planned" : "unsupported", KEYS_HIDDEN);
  const keys = totalOf(before);
  if (plan) return cleaningStep("keyrings", target, "planned", `${keys} keys would be removed.`, { keys });
  if (keys === 0)
    return cleaningStep("keyrings", target, "ok", "The kernel holds no keys of the tenant.", { keys, after: 0 });
  let after = keys;
  try {
    for (const uid of before.keys()) await removeOf(system, uid, isKeyring);
    after = await keysAfterCollection(system, tenant, signal);
    if (after > 0) {
      for (const uid of before.keys()) await removeOf(system, uid, () => true);
      after = await keysAfterCollection(system, tenant, signal);
    }
  } catch (error) {
    signal.throwIfAborted();
    const message = `The kernel holds ${keys} keys of the tenant, and keyctl cannot be run: ${messageOf(error)}`;
    return cleaningStep("keyrings", target, "unsupported", message, { keys });
  }
  const message =
    after === 0
      ? "The tenant's keys and keyrings were removed."
      : `The kernel still holds ${after} keys of the tenant. A restart of the host removes them.`;
  return cleaningStep("keyrings", target, after === 0 ? "ok" : "failed", message, { keys, after });
}

/** The number of kernel keys for the tenant's uid and each of its subordinate uids, or null if the host hides the numbers. */
async function tenantKeys(system: System, tenant: Tenant): Promise<ReadonlyMap<number, number> | null> {
  const text = await system.read(KEY_USERS);
  if (text === null && (await system.entry(KEY_SETTINGS)) !== null) return null;
  const own = parseKeyUsers(text ?? "").filter(({ uid, keys }) => keys > 0 && ownsUid(tenant, uid));
  return new Map(own.map(({ uid, keys }) => [uid, keys]));
}

const totalOf = (byUid: ReadonlyMap<number, number>): number => [...byUid.values()].reduce((sum, one) => sum + one, 0);

interface Key {
  readonly id: string;
  readonly type: string;
}
const isKeyring = ({ type }: Key): boolean => type === "keyring";

/**
 * Removes the kernel keys of one uid for which `isChosen` returns true. A command such as `keyctl clear` may fail, for example because the kernel
 * removed a key meanwhile or the tenant gave up the rights to it, so the kernel's counts of keys afterwards decide whether the removal succeeded.
 */
async function removeOf(system: System, uid: number, isChosen: (key: Key) => boolean): Promise<void> {
  const id = String(uid);
  const asTenant = (...words: readonly string[]) =>
    system.run("setpriv", ["--reuid", id, "--regid", id, "--clear-groups", ...words], TOOL_TIMEOUT_MS);
  // The tenant may have made its keyrings unreadable, so that the list of keys does not show them.
  for (const keyring of ["@u", "@us"]) await asTenant("keyctl", "setperm", keyring, ALL_RIGHTS);
  await system.run("keyctl", ["session", "muster", "sh", "-c", REMOVE_PERSISTENT, "muster", id], TOOL_TIMEOUT_MS);
  // The file `/proc/keys` shows only the keys that its reader may view, so a process with the tenant's uid reads it.
  const { stdout } = await asTenant("cat", "/proc/keys");
  for (const { id: key, type } of keysOf(stdout, uid).filter(isChosen).slice(0, MOST_KEYS)) {
    if (type === "keyring") await asTenant("keyctl", "clear", key);
    await asTenant("keyctl", "invalidate", key);
  }
}

/** The keys of a uid in the text of `/proc/keys`, whose lines are `id flags usage timeout rights uid gid type description`. */
export function keysOf(text: string, uid: number): Key[] {
  return text.split("\n").flatMap((line) => {
    const [id, , , , , owner, , type] = line.trim().split(/\s+/);
    return id === undefined || type === undefined || owner !== String(uid) ? [] : [{ id: `0x${id}`, type }];
  });
}

/**
 * Returns the number of the tenant's keys as soon as it is zero, or else after `COLLECTED_WITHIN_MS`, because the kernel frees removed keys a moment
 * later.
 */
async function keysAfterCollection(system: System, tenant: Tenant, signal: AbortSignal): Promise<number> {
  const deadline = performance.now() + COLLECTED_WITHIN_MS;
  for (;;) {
    const byUid = await tenantKeys(system, tenant);
    if (byUid === null) throw new Error(KEYS_HIDDEN);
    const keys = totalOf(byUid);
    if (keys === 0 || performance.now() >= deadline) return keys;
    await sleep(READ_EVERY_MS, undefined, { signal });
  }
}
