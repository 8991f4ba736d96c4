/** The version of this release. The hub sends it with each welcome, and the agent with each hello; the two programs may be of different releases. */
export const VERSION = "0.2.0";
