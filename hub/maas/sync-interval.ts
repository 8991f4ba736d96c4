import type { MaasPort } from "./port.ts";

const UNIT_SECONDS = { d: 86_400, h: 3600, m: 60, s: 1 } as const;

/**
 * MAAS writes a duration with the units of systemd, largest first, for example `1h 30m`. Returns null for a text that is no duration in MAAS's form.
 */
export function secondsOf(text: string): number | null {
  if (!/^\s*(\d+\s*[dhms]\s*)+$/.test(text)) return null;
  return [...text.matchAll(/(\d+)\s*([dhms])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS],
    0,
  );
}

export function durationOf(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "m"],
    [seconds % 60, "s"],
  ] as const;
  return parts.flatMap(([count, unit]) => (count > 0 ? [`${count}${unit}`] : [])).join("");
}

const SETTING = "hardware_sync_interval";

/**
 * MAAS gives a machine the interval of hardware sync at the machine's next deploy. MAAS has one hardware-sync interval for the whole region, and each
 * machine keeps the interval that it got at its deploy (maas 4.6). `assertSyncInterval` sets MAAS's interval, and returns the interval that MAAS had
 * before; it returns null if MAAS already had the wanted interval.
 */
export async function assertSyncInterval(maas: MaasPort, seconds: number): Promise<{ before: unknown } | null> {
  const before = await maas.getConfig(SETTING);
  if (typeof before === "string" && secondsOf(before) === seconds) return null;
  await maas.setConfig(SETTING, durationOf(seconds));
  return { before };
}
