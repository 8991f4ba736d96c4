import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { cleaningStep } from "./step.ts";
import { ownsUid, type Revocation, type RevokeStep } from "./tenant.ts";

const TOOL_TIMEOUT_MS = 30_000;
const KINDS = [
  { name: "shared memory segments", key: "segments", file: "shm", id: "shmid", option: "--shmem-id" },
  { name: "semaphore sets", key: "semaphores", file: "sem", id: "semid", option: "--semaphore-id" },
  { name: "message queues", key: "queues", file: "msg", id: "msqid", option: "--queue-id" },
] as const;
const REMOVED_AT_ONCE = 200;

/**
 * The ids of the objects in a file of `/proc/sysvipc` whose owner or creator is the tenant. The first line of each file in `/proc/sysvipc` names the
 * columns.
 */
export function sysvIdsOf(table: string, idColumn: string, isOwned: (uid: number) => boolean): number[] {
  const [header = "", ...lines] = table.split("\n").map((line) => line.trim().split(/\s+/));
  const columns = Array.isArray(header) ? header : [header];
  const [id, uid, creator] = [idColumn, "uid", "cuid"].map((name) => columns.indexOf(name));
  if (id === undefined || uid === undefined || creator === undefined || Math.min(id, uid, creator) < 0)
    throw new Error(`A table of /proc/sysvipc has no columns ${idColumn}, uid and cuid.`);
  return lines.flatMap((fields) =>
    fields.length > creator && (isOwned(Number(fields[uid])) || isOwned(Number(fields[creator])))
      ? [Number(fields[id])]
      : [],
  );
}

export async function removeSysvIpc({ system, tenant, plan }: Revocation): Promise<RevokeStep> {
  const target = "/proc/sysvipc";
  const evidence: Record<string, number> = {};
  const left: string[] = [];
  for (const { name, key, file, id, option } of KINDS) {
    const read = async (): Promise<number[]> => {
      const table = await system.read(`/proc/sysvipc/${file}`);
      if (table === null) throw new Error(`The kernel has no /proc/sysvipc/${file}.`);
      return sysvIdsOf(table, id, (uid) => ownsUid(tenant, uid));
    };
    const found = await read();
    evidence[key] = found.length;
    if (plan) continue;
    for (let at = 0; at < found.length; at += REMOVED_AT_ONCE) {
      const args = found.slice(at, at + REMOVED_AT_ONCE).flatMap((one) => [option, String(one)]);
      // `ipcrm` fails for an object that is already gone, so a second read of `/proc/sysvipc` decides whether the removal succeeded.
      await system.run("ipcrm", args, TOOL_TIMEOUT_MS);
    }
    const remaining = found.length === 0 ? [] : await read();
    if (remaining.length > 0) left.push(`${remaining.length} ${name}`);
  }
  const count = Object.values(evidence).reduce((sum, one) => sum + one, 0);
  if (plan) return cleaningStep("sysv_ipc", target, "planned", `${count} objects would be removed.`, evidence);
  return left.length === 0
    ? cleaningStep("sysv_ipc", target, "ok", `${count} objects were removed.`, evidence)
    : cleaningStep("sysv_ipc", target, "failed", `These objects could not be removed: ${left.join(", ")}.`, evidence);
}

/**
 * A login session's keyrings disappear with the session's processes. The Linux kernel keeps a user's persistent keyring, for example with Kerberos
 * tickets, for three days.
 */
export async function clearKeyrings({ system, tenant, plan, signal }: Revocation): Promise<RevokeStep> {
  const target = `uid ${tenant.uid}`;
  const before = keysOf(await system.read("/proc/key-users"), tenant.uid);
  if (before === null)
    return cleaningStep("keyrings", target, plan ? "planned" : "ok", "The kernel holds no keys of the tenant.", {
      keys: 0,
    });
  if (plan) return cleaningStep("keyrings", target, "planned", `${before} keys would be cleared.`, { keys: before });
  const uid = String(tenant.uid);
  const asTenant = ["--reuid", uid, "--regid", uid, "--clear-groups", "keyctl"];
  try {
    for (const keyring of ["@u", "@us"]) await system.run("setpriv", [...asTenant, "clear", keyring], TOOL_TIMEOUT_MS);
    const persistent = await system.run("keyctl", ["get_persistent", "@p", uid], TOOL_TIMEOUT_MS);
    const id = persistent.stdout.trim();
    if (persistent.exitCode === 0 && /^[0-9]+$/.test(id)) await system.run("keyctl", ["clear", id], TOOL_TIMEOUT_MS);
  } catch (error) {
    const message = `The kernel holds ${before} keys of the tenant, and keyctl cannot be run: ${messageOf(error)}`;
    return cleaningStep("keyrings", target, "unsupported", message, { keys: before });
  }
  const after = await keysAfterCollection(system, tenant.uid, signal);
  return after <= EMPTY_KEYRINGS
    ? cleaningStep("keyrings", target, "ok", "The tenant's keyrings are empty.", { keys: before, after })
    : cleaningStep("keyrings", target, "failed", `The kernel still holds ${after} keys of the tenant.`, {
        keys: before,
        after,
      });
}

/**
 * The Linux kernel may keep a user's empty keyrings for a short time, and counts each empty keyring as a key. If the kernel counts at most three keys
 * of a tenant, the agent takes them for empty keyrings.
 */
const EMPTY_KEYRINGS = 3;
const COLLECTED_WITHIN_MS = 10_000;
const READ_EVERY_MS = 100;

/**
 * The number of the tenant's keys that are still in the kernel's keyrings. The kernel removes cleared keys a moment later, so `keysAfterCollection`
 * reads the number of keys until it is zero.
 */
async function keysAfterCollection(system: System, uid: number, signal: AbortSignal): Promise<number> {
  const deadline = Date.now() + COLLECTED_WITHIN_MS;
  for (;;) {
    const keys = keysOf(await system.read("/proc/key-users"), uid) ?? 0;
    if (keys <= EMPTY_KEYRINGS || Date.now() >= deadline) return keys;
    await sleep(READ_EVERY_MS, undefined, { signal });
  }
}

/**
 * The number of a uid's keys in the text of `/proc/key-users`, or null if the text has no line for the uid. A line of `/proc/key-users` is `uid:
 * usage nkeys/nikeys qnkeys/max qnbytes/max`.
 */
export function keysOf(text: string | null, uid: number): number | null {
  const found = new RegExp(`^\\s*${uid}:\\s+\\d+\\s+(\\d+)/\\d+`, "m").exec(text ?? "")?.[1];
  return found === undefined ? null : Number(found);
}
