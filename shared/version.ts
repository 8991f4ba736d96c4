/**
 * The version of this release of Muster. The hub sends its version with each welcome frame, and the agent with each hello frame, because hub and
 * agent may be of different releases.
 */
export const VERSION = "0.2.0";
