/** The version of the hub program. Agents get it with each welcome. */
export const HUB_VERSION = "0.2.0";
