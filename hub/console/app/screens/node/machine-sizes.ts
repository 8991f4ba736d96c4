const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Formats a number of bytes with at least three digits, for example `1.75 TiB`. */
export function sizeOf(bytes: number | null): string {
  if (bytes === null) return "-";
  const step = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  const digits = step === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${Number(value.toFixed(digits))} ${UNITS[step]}`;
}

/** Formats the speed of a network interface, for example `400 Gbit/s`. */
export function speedOf(mbps: number | null): string {
  if (mbps === null) return "-";
  return mbps >= 1000 ? `${Number((mbps / 1000).toFixed(1))} Gbit/s` : `${mbps} Mbit/s`;
}
