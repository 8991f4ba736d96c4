/** The signs by which the API of a version of MAAS shows the end of an erase (maas 2.9). */
export interface EraseSigns {
  /**
   * `event`: MAAS writes an event when the erase ended well. `release`: MAAS writes no such event, and releases the machine by itself only after its
   * erasing script has reported success. A version of the kind `event` also releases the machine after a script that reported nothing.
   */
  readonly end: "event" | "release";
  /** True if the version erases disks by a release script, whose output the API may return. */
  readonly hasReleaseScripts: boolean;
}

/** For each minor version of MAAS 3 that got the events at a later patch, the first patch with the events. The versions 3.2 and 3.3 never got them. */
const FIRST_WITH_EVENTS: ReadonlyMap<number, number> = new Map([
  [2, Number.POSITIVE_INFINITY],
  [3, Number.POSITIVE_INFINITY],
  [4, 6],
  [5, 3],
]);
/** The signs of present versions. A version that the hub cannot read, or that nobody examined, must show the signs of present versions. */
const PRESENT: EraseSigns = { end: "event", hasReleaseScripts: true };

export function eraseSigns(version: string): EraseSigns {
  const numbers = /^3\.(\d{1,3})\.(\d{1,3})(?!\d)/.exec(version);
  if (numbers === null) return PRESENT;
  const [minor, patch] = [Number(numbers[1]), Number(numbers[2])];
  const first = FIRST_WITH_EVENTS.get(minor);
  if (first === undefined) return PRESENT;
  return { end: patch < first ? "release" : "event", hasReleaseScripts: minor >= 5 };
}
