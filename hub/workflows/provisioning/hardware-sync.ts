/** What MAAS says of a machine's hardware sync; the same of a fresh look and of the watcher's. */
export interface SyncFacts {
  readonly enableHwSync: boolean | null;
  readonly lastSync: Date | null;
  readonly syncIntervalSeconds: number | null;
}

/** MAAS's own rule: late by half an interval is unhealthy (decision M3). */
const TOLERANCE = 1.5;

/**
 * MAAS sets `last_sync` when the deploy ends, before any sync ran; only an advance past `baseline` is a sync. A version of MAAS that does
 * not show `enable_hw_sync` or the interval is believed by the advance alone.
 */
export function hardwareSyncIsHealthy(facts: SyncFacts, baseline: Date | null, now: Date): boolean {
  const { enableHwSync, lastSync, syncIntervalSeconds } = facts;
  if (enableHwSync === false) return false;
  if (lastSync === null || (baseline !== null && lastSync <= baseline)) return false;
  return syncIntervalSeconds === null || now.getTime() <= lastSync.getTime() + TOLERANCE * syncIntervalSeconds * 1000;
}
