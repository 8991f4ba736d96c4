/** The file of the journal of an unfinished GPU cleaning. */
export const SCRUB_JOURNAL = "/var/lib/muster/agent/gpu-scrub.json";
