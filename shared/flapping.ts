/**
 * When the status of a condition changes too often, the condition flaps: at least `changes` changes within `windowSeconds`, where changes within
 * `apartSeconds` count once, because reports that were held up arrive together. A flapping condition is stable again when its status has not changed
 * for `holdSeconds`.
 */
export const FLAPPING = { changes: 4, windowSeconds: 900, apartSeconds: 10, holdSeconds: 300 } as const;

/** What the hub stores about the changes of one condition of a node since the host's last installation (the node's generation). */
export interface ChangeHistory {
  /**
   * The times of the condition's newest changes without those that come within `apartSeconds` after another; at most `FLAPPING.changes`, the newest
   * first.
   */
  readonly counted: readonly Date[];
  /** The time of the condition's newest change of status, or of its first report. */
  readonly changedAt: Date;
  /** The time at which the condition last began to flap, even if it has stopped since then. */
  readonly flappingSince: Date | null;
}

const secondsBetween = (earlier: Date, later: Date): number => (later.getTime() - earlier.getTime()) / 1000;

/** The time at which the hub acts on a flapping condition again if the condition's status does not change until then. */
export const heldFrom = (changedAt: Date): Date => new Date(changedAt.getTime() + FLAPPING.holdSeconds * 1000);

/** True if the condition flaps at the time `now`, so that the hub does not act on its status yet. */
export const isFlapping = (
  { flappingSince, changedAt }: Pick<ChangeHistory, "flappingSince" | "changedAt">,
  now: Date,
): boolean => flappingSince !== null && now < heldFrom(changedAt);

/**
 * Returns the history of a condition's changes after a further change of its status. The SQL of `writeConditions` in
 * hub/db/queries/node-conditions.ts computes the same history of a condition's changes as `afterChange`.
 */
export function afterChange(before: ChangeHistory, at: Date): ChangeHistory {
  const [newest] = before.counted;
  const together = newest !== undefined && secondsBetween(newest, at) < FLAPPING.apartSeconds;
  const counted = together ? before.counted : [at, ...before.counted].slice(0, FLAPPING.changes);
  const oldest = counted[FLAPPING.changes - 1];
  const tooMany = oldest !== undefined && secondsBetween(oldest, at) <= FLAPPING.windowSeconds;
  const flappingSince = isFlapping(before, at) ? before.flappingSince : tooMany ? at : null;
  return { counted, changedAt: at, flappingSince };
}
