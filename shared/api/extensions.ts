/** What the API's description says beyond OpenAPI, so that a client such as the command line needs no table of its own. */

/** On a number in an answer: so many parts of the request were not done, although the request was answered well. */
export const countsFailures = { "x-counts-failures": true } as const;
