const LEAST = 5;
const SHARE = 0.2;
/**
 * A breaker stops too many changes of node status at one site: it adds the changes in the last BREAKER_WINDOW_SECONDS to the present changes. Because
 * a breaker also counts earlier changes, many passes that each change few nodes have the same limit as one pass that changes many.
 */
export const BREAKER_WINDOW_SECONDS = 600;
export const ACCEPT_SECONDS = 900;

/** Within `BREAKER_WINDOW_SECONDS`, the status of five nodes of a site may change, or of a fifth of the nodes in service if this is more. */
export const moveLimit = (inService: number): number => Math.max(LEAST, Math.floor(SHARE * inService));

/**
 * True if the breaker must open, because too many nodes would change their status. `wouldMove` is the number of nodes whose status would change now,
 * and `moved` the number whose status changed within `BREAKER_WINDOW_SECONDS`. `inService` is the number of the site's nodes in service before the
 * changes that `wouldMove` counts.
 */
export const breakerTrips = (counts: { wouldMove: number; moved: number; inService: number }): boolean =>
  counts.wouldMove > 0 && counts.wouldMove + counts.moved > moveLimit(counts.inService);
