/** Of the hub program; told to agents with each welcome. */
export const HUB_VERSION = "0.2.0";
