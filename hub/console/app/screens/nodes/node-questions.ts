import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer, Query } from "../../api/schema.ts";
import { withoutRooms } from "./rack-place.ts";
import type { nodesRoute } from "./route.ts";

export type NodesSearch = ReturnType<typeof nodesRoute.useSearch>;
export type NodeRow = Answer<"listNodes">["items"][number];
export type Facets = Answer<"countNodesByFacet">;
export type FacetName = keyof Facets["facets"];
type Filter = Query<"countNodesByFacet">;

const PAGE = 100;

/** Converts the filter in the URL into the API's form, in which commas separate several values. */
function filterOf({ sort: _, columns: __, view: ___, no_room: ____, ...filter }: NodesSearch): Filter {
  const { status, sku_id, failure_class, ...one } = filter;
  const joined = (values: readonly string[] | undefined): string | undefined => values?.join(",");
  return { ...one, status: joined(status), sku_id: joined(sku_id), failure_class: joined(failure_class) };
}

export const facetsOf = (search: NodesSearch) => {
  const query = filterOf(search);
  return question(["nodes"], ["nodes", "facets", query], (signal) =>
    read(api.GET("/api/v1/admin/nodes/facets", { params: { query }, signal })),
  );
};

export const listOf = (search: NodesSearch) => {
  const query = { ...filterOf(search), sort: search.sort ?? ("hostname" as const) };
  return {
    about: ["nodes"],
    key: ["nodes", "list", query],
    ask: (cursor: string | undefined, signal: AbortSignal) =>
      read(api.GET("/api/v1/admin/nodes", { params: { query: { ...query, limit: PAGE, cursor } }, signal })),
  };
};

/** Queries the nodes of one room: either those with a rack and a unit, or those without. */
export const placedOf = (search: NodesSearch, placed: boolean) => {
  const query = {
    ...filterOf(search),
    sort: "location" as const,
    placed: placed ? ("true" as const) : ("false" as const),
  };
  const roomless = search.no_room === "true";
  return {
    about: ["nodes"],
    key: ["nodes", "placed", query, roomless],
    ask: async (cursor: string | undefined, signal: AbortSignal) => {
      const page = await read(
        api.GET("/api/v1/admin/nodes", { params: { query: { ...query, limit: PAGE, cursor } }, signal }),
      );
      return roomless ? withoutRooms(page) : page;
    },
  };
};
