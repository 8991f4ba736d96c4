import type { RemovalLimits } from "../system/confined-removal.ts";
import { removalLimits } from "./removal.ts";
import { cleaningStep, namesIn } from "./step.ts";
import { ownsUid, type Revocation, type RevokeStep } from "./tenant.ts";

/** The folders in which any user can make POSIX shared memory, semaphores and message queues. */
const FOLDERS = ["/dev/shm", "/dev/mqueue"];
const DEEPEST_SHARED_FOLDER = 16;
const ALIVE_EVERY = 500;
const MOST_LEFT = 1_000;

/** The limits of one removal of POSIX IPC objects, which exist because a tenant may have made millions of such objects. */
export interface PosixBounds {
  readonly objects: number;
  /** The agent reads a folder with more than `namesAtOnce` names in several runs. */
  readonly namesAtOnce: number;
}
const BOUNDS: PosixBounds = { objects: 500_000, namesAtOnce: 20_000 };

export async function removePosixIpc(revocation: Revocation, bounds: PosixBounds = BOUNDS): Promise<RevokeStep> {
  const target = FOLDERS.join(", ");
  const removal = new PosixRemoval(revocation, bounds);
  for (const folder of FOLDERS) await removal.clear(folder, 0);
  const { found, left, stopped } = removal;
  const evidence = { found, left: left.size };
  const atLeast = stopped === null ? "" : "At least ";
  if (revocation.plan)
    return cleaningStep("posix_ipc", target, "planned", `${atLeast}${found} objects would be removed.`, evidence);
  const faults = [
    ...(stopped === null ? [] : [`${found - left.size} objects were removed, and more are left: ${stopped}.`]),
    ...(left.size === 0 ? [] : [`${left.size} objects could not be removed: ${namesIn([...left])}.`]),
  ];
  return faults.length === 0
    ? cleaningStep("posix_ipc", target, "ok", `${found} objects were removed.`, evidence)
    : cleaningStep("posix_ipc", target, "failed", faults.join(" "), evidence);
}

/** One removal of POSIX IPC objects has one deadline and one limit of objects for `/dev/shm` and `/dev/mqueue` together. */
class PosixRemoval {
  /** How many of the tenant's POSIX IPC objects the removal has found. A folder that the tenant made in `/dev/shm` counts as one POSIX IPC object. */
  found = 0;
  readonly left = new Set<string>();
  /** Why the removal of POSIX IPC objects stopped before it had read all objects, or null. */
  stopped: string | null = null;
  #looked = 0;
  readonly #revocation: Revocation;
  readonly #bounds: PosixBounds;
  readonly #limits: RemovalLimits;
  constructor(revocation: Revocation, bounds: PosixBounds) {
    this.#revocation = revocation;
    this.#bounds = bounds;
    const mayRemove = (uid: number): boolean => ownsUid(revocation.tenant, uid);
    this.#limits = { ...removalLimits(revocation), mayRemove };
  }

  async clear(folder: string, depth: number): Promise<void> {
    const { system, plan } = this.#revocation;
    const { namesAtOnce } = this.#bounds;
    for (let isWhole = false; !isWhole; ) {
      const names = await system.listSome(folder, namesAtOnce + 1);
      isWhole = names.length <= namesAtOnce;
      let removed = 0;
      for (const name of names.slice(0, namesAtOnce)) {
        if (this.#isOver()) return;
        removed += (await this.#clearEntry(`${folder}/${name}`, depth)) ? 1 : 0;
      }
      if (!isWhole && (plan || removed === 0)) {
        this.#stop(`${folder} has more than ${namesAtOnce} names`);
        return;
      }
    }
  }

  async #clearEntry(path: string, depth: number): Promise<boolean> {
    const { system, tenant, plan } = this.#revocation;
    const entry = await system.entry(path);
    if (entry === null) return false;
    if (!ownsUid(tenant, entry.uid)) {
      if (entry.kind === "folder" && depth < DEEPEST_SHARED_FOLDER) await this.clear(path, depth + 1);
      return false;
    }
    if (plan) {
      this.found += 1;
      return false;
    }
    const { left } = await system.removeConfined(path, this.#limits);
    const [first] = left;
    if (first !== undefined)
      return this.#leave(path, first.path === path ? first.reason : `${first.path}: ${first.reason}`);
    this.found += 1;
    return true;
  }

  #isOver(): boolean {
    this.#revocation.signal.throwIfAborted();
    this.#looked += 1;
    if (this.#looked % ALIVE_EVERY === 0) this.#revocation.alive();
    if (this.#looked > this.#bounds.objects) this.#stop(`the step looks at ${this.#bounds.objects} objects at most`);
    else if (performance.now() > this.#limits.deadline) this.#stop("the time for the step is over");
    return this.stopped !== null;
  }

  #stop(reason: string): void {
    this.stopped ??= reason;
  }

  #leave(path: string, reason: string): false {
    const text = `${path}: ${reason}`;
    if (!this.left.has(text)) this.found += 1;
    this.left.add(text);
    if (this.left.size >= MOST_LEFT) this.#stop(`${MOST_LEFT} objects could not be removed`);
    return false;
  }
}
