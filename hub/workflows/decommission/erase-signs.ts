/** The signs by which a version of MAAS shows the end of an erase (maas 2.9). */
export interface EraseSigns {
  /**
   * The sign `event` means that MAAS writes an event when an erase has ended well. The sign `release` means that MAAS writes no event for the end of
   * an erase, and releases the machine by itself only after its erasing script reported success. A MAAS version that writes an event for the end of
   * an erase also releases a machine whose erasing script reported nothing.
   */
  readonly end: "event" | "release";
  /** True if the MAAS version erases disks by a release script, whose output the API may return. */
  readonly hasReleaseScripts: boolean;
}

/**
 * The first patch version with erase events, for each minor version of MAAS 3 that got erase events in a patch. The MAAS versions 3.2 and 3.3 never
 * got erase events.
 */
const FIRST_WITH_EVENTS: ReadonlyMap<number, number> = new Map([
  [2, Number.POSITIVE_INFINITY],
  [3, Number.POSITIVE_INFINITY],
  [4, 6],
  [5, 3],
]);
/** If the hub cannot read or does not know the version of MAAS, it expects that MAAS shows the end of an erase as present versions do. */
const PRESENT: EraseSigns = { end: "event", hasReleaseScripts: true };

export function eraseSigns(version: string): EraseSigns {
  const numbers = /^3\.(\d{1,3})\.(\d{1,3})(?!\d)/.exec(version);
  if (numbers === null) return PRESENT;
  const [minor, patch] = [Number(numbers[1]), Number(numbers[2])];
  const first = FIRST_WITH_EVENTS.get(minor);
  if (first === undefined) return PRESENT;
  return { end: patch < first ? "release" : "event", hasReleaseScripts: minor >= 5 };
}
