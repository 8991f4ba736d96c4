import type { KeySyncStatus } from "../../shared/key-sync.ts";
import { isUnfinished } from "../../shared/task-state.ts";
import type { KeyFacts } from "../db/queries/allocation-keys.ts";
import { judgeGrant } from "../node/judge-grant.ts";

export interface KeySync {
  readonly status: KeySyncStatus;
  /** Why the status is not `synced`. */
  readonly reason: string | null;
}

const SYNCED: KeySync = { status: "synced", reason: null };
const syncing = (reason: string): KeySync => ({ status: "syncing", reason });
const error = (reason: string): KeySync => ({ status: "error", reason });

type Facts = Omit<KeyFacts, "id" | "siteId" | "nodeId" | "groupIds">;

/** Decides whether the account of an allocation has the keys that the allocation names. */
export function keySync({ hostname, status, errorMessage, isDue, node, task, isTaskGone }: Facts): KeySync {
  if (status === "ended") return SYNCED;
  if (status === "ending") return syncing(`The turnover removes the account on ${hostname}`);
  if (status === "failed") {
    const late = isDue ? ". A key that was removed since may still be in the account: grant or release it" : "";
    return error(`The account on ${hostname} could not be made: ${errorMessage ?? "unknown"}${late}`);
  }
  if (status === "granting") return syncing(`The agent makes the account on ${hostname}`);
  if (task !== null && isUnfinished(task.state)) return syncing(`The agent changes the keys on ${hostname}`);
  if (task !== null || isTaskGone) {
    const verdict = judgeGrant(task);
    if (verdict.to === "failed") return error(`The keys on ${hostname} could not be changed: ${verdict.message}`);
  }
  if (!isDue) return SYNCED;
  return syncing(
    node === "active"
      ? `The keys on ${hostname} are to be changed`
      : `The keys on ${hostname} are changed when its node is active; it is ${node ?? "gone"}`,
  );
}

const WORST: readonly KeySyncStatus[] = ["error", "syncing", "synced"];

/** Returns the worst of the key statuses of several accounts with its reason, or `synced` for an empty list. */
export const worstSync = (all: readonly KeySync[]): KeySync =>
  WORST.flatMap((status) => all.find((one) => one.status === status) ?? [])[0] ?? SYNCED;
