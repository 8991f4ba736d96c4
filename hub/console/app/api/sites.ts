import { useQuery } from "@tanstack/react-query";
import { api, read } from "./client.ts";
import { question } from "./query-client.ts";
import type { Answer } from "./schema.ts";
import { useMay } from "./session.ts";

export type Site = Answer<"listMaasSites">["items"][number];
const MOST_SITES = 200;

const sites = question(["sites"], ["sites"], (signal) =>
  read(api.GET("/api/v1/admin/maas-sites", { params: { query: { limit: MOST_SITES } }, signal })),
);

/** The sites by their ids. A person without the right to read sites gets an empty map, and sees the ids of sites in place of their names. */
export function useSites(): ReadonlyMap<string, Site> {
  const may = useMay();
  const { data } = useQuery({ ...sites, enabled: may("read_fleet") });
  return new Map((data?.items ?? []).map((site) => [site.id, site]));
}

/** Returns a function that returns the name of a site for its id, as a person sees it. */
export function useSiteName(): (id: string | null) => string {
  const known = useSites();
  return (id) => (id === null ? "no site" : (known.get(id)?.name ?? id.slice(0, 8)));
}
