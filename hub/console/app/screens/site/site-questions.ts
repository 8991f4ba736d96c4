import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";

export type Site = Answer<"getMaasSite">;
export type Profile = Answer<"listMaasSiteProfiles">["items"][number];
export type SiteStatus = Answer<"getReconciliationStatus">["sites"][number];
export type Breaker = SiteStatus["breakers"][number];

const about = (id: string): string[] => ["sites", `maas-sites/${id}`];

export const siteOf = (id: string) =>
  question(about(id), ["site", id], (signal) =>
    read(api.GET("/api/v1/admin/maas-sites/{id}", { params: { path: { id } }, signal })),
  );

export const statusOf = (id: string) =>
  question([...about(id), "nodes"], ["site", id, "status"], async (signal) => {
    const { sites } = await read(
      api.GET("/api/v1/admin/reconciliation/status", { params: { query: { site_id: id } }, signal }),
    );
    return sites[0] ?? null;
  });

export const warningsOf = (id: string) =>
  question(about(id), ["site", id, "warnings"], (signal) =>
    read(api.GET("/api/v1/admin/maas-sites/{id}/credential-warnings", { params: { path: { id } }, signal })),
  );
