const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;

/**
 * The waiting time before the next try doubles with each failed try, and is a random value between half of that time and the whole. The argument
 * `chance` is a random number from 0 to 1.
 */
export const waitAfter = (failures: number, chance: number): number =>
  Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)) * (0.5 + chance / 2);
