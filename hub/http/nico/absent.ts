import type { Endpoint } from "./endpoint.ts";

/**
 * Kinds of NICo's objects that no hub of Muster has. For kinds of objects that Muster lacks, the hub answers an empty list and not 404, because
 * NICo's clients take 404 for a broken service.
 */
const ABSENT = ["infiniband-partition", "subnet", "allocation"] as const;

export const nicoAbsent = ABSENT.map(
  (kind): Endpoint => ({
    operationId: `nicoList_${kind}`,
    method: "GET",
    path: `/${kind}`,
    permission: "read",
    right: "use_hub",
    place: "everywhere",
    status: 200,
    answer: async () => ({ body: [], total: 0 }),
  }),
);
