/** Hub and agent may be of different releases, so the hub sends its version in each frame `welcome`, and the agent in each frame `hello`. */
export const VERSION = "0.2.0";
