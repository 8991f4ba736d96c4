/**
 * When the status of a condition changes too often, the condition flaps: at least `changes` changes within `windowSeconds`, where changes within
 * `apartSeconds` count once, because reports that were held up arrive together. It flaps until its status has held for `holdSeconds`.
 */
export const FLAPPING = { changes: 4, windowSeconds: 900, apartSeconds: 10, holdSeconds: 300 } as const;

/** What the hub keeps of the changes of one condition in one generation of its node. */
export interface ChangeHistory {
  /** The times of the newest changes that count, the newest first, at most `FLAPPING.changes`. */
  readonly counted: readonly Date[];
  /** The time of the newest change, or of the first report. */
  readonly changedAt: Date;
  /** The time since which the condition flaps, or has flapped last. */
  readonly flappingSince: Date | null;
}

const secondsBetween = (earlier: Date, later: Date): number => (later.getTime() - earlier.getTime()) / 1000;

/** The time at which a flapping condition counts again if its status does not change. */
export const heldFrom = (changedAt: Date): Date => new Date(changedAt.getTime() + FLAPPING.holdSeconds * 1000);

/** True if the condition flaps at the time `now`, so that its status is too young to let anything happen. */
export const isFlapping = (
  { flappingSince, changedAt }: Pick<ChangeHistory, "flappingSince" | "changedAt">,
  now: Date,
): boolean => flappingSince !== null && now < heldFrom(changedAt);

/** Returns the history after a change of the status. `writeConditions` of hub/db/queries/node-conditions.ts decides the same in SQL. */
export function afterChange(before: ChangeHistory, at: Date): ChangeHistory {
  const [newest] = before.counted;
  const together = newest !== undefined && secondsBetween(newest, at) < FLAPPING.apartSeconds;
  const counted = together ? before.counted : [at, ...before.counted].slice(0, FLAPPING.changes);
  const oldest = counted[FLAPPING.changes - 1];
  const tooMany = oldest !== undefined && secondsBetween(oldest, at) <= FLAPPING.windowSeconds;
  const flappingSince = isFlapping(before, at) ? before.flappingSince : tooMany ? at : null;
  return { counted, changedAt: at, flappingSince };
}
