/** The fleet's breaker (decision F1), as functions of values. */

const LEAST = 5;
const SHARE = 0.2;
/** Moves of the last minutes count together with those of now: many small sweeps are one large one. */
export const BREAKER_WINDOW_SECONDS = 600;
/** For how long everything is let through once a person has said that what is seen is true. */
export const ACCEPT_SECONDS = 900;

/** How many nodes of a site may be moved within the window: five, or a fifth of those in service where that is more. */
export const moveLimit = (inService: number): number => Math.max(LEAST, Math.floor(SHARE * inService));

/**
 * `wouldMove`: what would be moved now; `moved`: what was within the window; `inService`: nodes that are in service now, before any move, together
 * with those moved within the window.
 */
export const breakerTrips = (counts: { wouldMove: number; moved: number; inService: number }): boolean =>
  counts.wouldMove > 0 && counts.wouldMove + counts.moved > moveLimit(counts.inService);
