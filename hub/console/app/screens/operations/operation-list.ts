import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import type { operationsRoute } from "./route.ts";

export type OperationsSearch = ReturnType<typeof operationsRoute.useSearch>;
export type OperationRow = Answer<"listOperations">["items"][number];

const PAGE = 100;

/** Converts the filter in the URL into the API's form, in which commas separate several values. */
function filterOf({ sort: _, ...search }: OperationsSearch) {
  const { kind, status, failure_class: failure, ...one } = search;
  return { ...one, kind: kind?.join(","), status: status?.join(","), failure_class: failure?.join(",") };
}

/** Reads the number of operations that match the filter. */
export const totalOf = (search: OperationsSearch) => {
  const query = { ...filterOf(search), limit: 1, include_total: "true" as const };
  return question(["operations"], ["operations", "total", query], (signal) =>
    read(api.GET("/api/v1/admin/operations", { params: { query }, signal })),
  );
};

export const listOf = (search: OperationsSearch) => {
  const query = { ...filterOf(search), sort: search.sort ?? ("-requested_at" as const) };
  return {
    about: ["operations"],
    key: ["operations", "list", query],
    ask: (cursor: string | undefined, signal: AbortSignal) =>
      read(api.GET("/api/v1/admin/operations", { params: { query: { ...query, limit: PAGE, cursor } }, signal })),
  };
};

export const hasFilter = ({ sort: _, ...filter }: OperationsSearch): boolean =>
  Object.values(filter).some((value) => value !== undefined);

/** The filters for operations that people use most, each with a title. */
export const PRESETS: readonly { readonly title: string; readonly search: OperationsSearch }[] = [
  { title: "All", search: {} },
  { title: "Failed", search: { status: ["failed"] } },
  { title: "Slow", search: { slow: "true", sort: "stage_deadline" } },
  { title: "Under way", search: { status: ["pending", "running", "compensating"], sort: "stage_deadline" } },
];

/** Says whether the filter in the URL equals the given ready-made filter of the list of operations. The order does not matter. */
export function isPreset(search: OperationsSearch, { sort: _, ...preset }: OperationsSearch): boolean {
  const { sort: __, ...filter } = search;
  const flat = (given: object): string =>
    Object.entries(given)
      .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${[value].flat().toSorted().join(",")}`]))
      .toSorted()
      .join("&");
  return flat(filter) === flat(preset);
}
