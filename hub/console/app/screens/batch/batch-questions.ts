import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";

export type Batch = Answer<"getOnboardingBatch">;
export type Kind = Batch["kind"];
const PAGE = 100;

const topicOf = (kind: Kind, id: string): string => `${kind}-batches/${id}`;

export const batchOf = (kind: Kind, id: string) =>
  question<Batch>([topicOf(kind, id), "operations"], ["batch", kind, id], (signal) => {
    const request = { params: { path: { id } }, signal };
    return kind === "onboarding"
      ? read(api.GET("/api/v1/admin/onboarding-batches/{id}", request))
      : read(api.GET("/api/v1/admin/decommission-batches/{id}", request));
  });

export const hostsOf = (id: string, status: string | undefined) => {
  const query = { batch_id: id, status, limit: PAGE };
  return {
    about: ["operations"],
    key: ["batch", id, "hosts", status],
    ask: (cursor: string | undefined, signal: AbortSignal) =>
      read(api.GET("/api/v1/admin/operations", { params: { query: { ...query, cursor } }, signal })),
  };
};

export const changedBy = (kind: Kind, id: string): string[] => [topicOf(kind, id), "batches", "operations", "nodes"];
