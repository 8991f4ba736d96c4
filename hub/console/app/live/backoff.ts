const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;

/** The time until the next try after some failed tries, between half and the whole of a time that doubles. `chance` is a number from 0 to 1. */
export const waitAfter = (failures: number, chance: number): number =>
  Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)) * (0.5 + chance / 2);
