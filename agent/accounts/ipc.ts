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
