import { counter, histogram, upTo } from "./family.ts";

/** The largest number of different MAAS operations with a label of their own. The hub's MAAS client has about forty operations. */
const MOST_OPERATIONS = 80;

export const maasRequests = counter({
  name: "muster_maas_requests_total",
  help: "Requests to MAAS, by operation and answer; the answer is ok or the code of the error.",
  labels: { operation: upTo(MOST_OPERATIONS), answer: upTo(20) },
});

export const maasRequestSeconds = histogram({
  name: "muster_maas_request_seconds",
  help: "Duration of requests to MAAS, with their wait for a free place among the requests to the region.",
  labels: { answer: upTo(20) },
  buckets: [0.05, 0.25, 1, 5, 30, 120, 600],
});
