/** The version of the agent program, sent with every hello. */
export const AGENT_VERSION = "0.2.0";
