import { queryOptions, type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";

export type Repair = Answer<"getRepair">;
export type Entry = Repair["timeline"][number];

/** The number of other repairs of the same machine that the screen shows. The list of repairs shows all. */
const OTHERS = 20;

const keyOf = (id: string) => ["repair", id] as const;

const repairOf = (id: string, nodeId: string | undefined) =>
  question([`repairs/${id}`, ...(nodeId === undefined ? [] : [`nodes/${nodeId}`])], keyOf(id), (signal) =>
    read(api.GET("/api/v1/admin/repairs/{id}", { params: { path: { id } }, signal })),
  );

/** Asks for a case. The checks that a repaired machine fails change with its node, whose id is known only after the first answer. */
export function useRepair(id: string): UseQueryResult<Repair> {
  const known = useQueryClient().getQueryData<Repair>(keyOf(id));
  return useQuery(queryOptions(repairOf(id, known?.node_id)));
}

export const repairsOfNode = (nodeId: string) =>
  question(["repairs"], ["repairs", "node", nodeId], (signal) =>
    read(api.GET("/api/v1/admin/repairs", { params: { query: { node_id: nodeId, limit: OTHERS } }, signal })),
  );

/** The names of the console's cached data, such as `repairs`, that is reloaded after a person uses a verb of the repair case, such as claim. */
export const changedBy = ({ id, node_id: node }: Repair): string[] => [
  `repairs/${id}`,
  "repairs",
  `nodes/${node}`,
  "nodes",
  "allocations",
];
