/** The systemd drop-in that overrides the interval of MAAS's hardware sync, and survives when MAAS rewrites the timer's unit. */
export const INTERVAL_DROP_IN = "/etc/systemd/system/maas_hardware_sync.timer.d/50-muster-interval.conf";
