/** The breaker that limits moves of nodes (decision F1), as pure functions. */

const LEAST = 5;
const SHARE = 0.2;
/** Moves within this window count together with the present ones, so many small sweeps have the same limit as a large one. */
export const BREAKER_WINDOW_SECONDS = 600;
/** How long every move is let through after a person confirmed that the observations are right. */
export const ACCEPT_SECONDS = 900;

/** How many nodes of a site may be moved within the window: five, or a fifth of the nodes in service if that is more. */
export const moveLimit = (inService: number): number => Math.max(LEAST, Math.floor(SHARE * inService));

/**
 * True if the breaker trips. `wouldMove` nodes would be moved now, and `moved` nodes were moved within the window. `inService` counts the nodes in
 * service before any of these moves.
 */
export const breakerTrips = (counts: { wouldMove: number; moved: number; inService: number }): boolean =>
  counts.wouldMove > 0 && counts.wouldMove + counts.moved > moveLimit(counts.inService);
