/** A machine that the hub read from MAAS has the fields of `SyncFacts`, and so has the hub's stored observation of a machine. */
export interface SyncFacts {
  readonly enableHwSync: boolean | null;
  readonly lastSync: Date | null;
  readonly syncIntervalSeconds: number | null;
}

/** By MAAS's own rule, a hardware sync that is late by half an interval is unhealthy (decision M3). */
const TOLERANCE = 1.5;

/**
 * MAAS sets `last_sync` at the end of the deploy, before any hardware sync ran. Only a `last_sync` later than `baseline`, the value of `last_sync` at
 * the end of the deploy, proves a hardware sync. If MAAS does not show the sync interval, hardware sync is healthy as soon as `last_sync` is later
 * than at the end of the deploy (`baseline`). If MAAS does not show `enable_hw_sync` for a machine, hardware sync counts as enabled.
 */
export function hardwareSyncIsHealthy(facts: SyncFacts, baseline: Date | null, now: Date): boolean {
  const { enableHwSync, lastSync, syncIntervalSeconds } = facts;
  if (enableHwSync === false) return false;
  if (lastSync === null || (baseline !== null && lastSync <= baseline)) return false;
  return syncIntervalSeconds === null || now.getTime() <= lastSync.getTime() + TOLERANCE * syncIntervalSeconds * 1000;
}
