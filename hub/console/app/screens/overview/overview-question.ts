import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";

export type Overview = Answer<"getOverview">;

export const overview = question(["nodes", "operations", "sites"], ["overview"], (signal) =>
  read(api.GET("/api/v1/admin/overview", { signal })),
);
