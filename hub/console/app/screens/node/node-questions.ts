import { api, read } from "../../api/client.ts";
import { question, unannounced } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { workOf } from "../../live/topics.ts";

export type Node = Answer<"getNode">;
export type Drift = Answer<"listDrift">["items"][number];
export type Task = Answer<"listNodeTasks">["items"][number];
export type ExternalAttempt = Answer<"getExternalAttempt">;
export type Entry = Answer<"exportNodeLifecycle">["items"][number];

/**
 * The number of the newest allocations, sanitization records and tasks that the node's screen shows. The node's history, and the lists of allocations
 * and of sanitization records, are not limited to the newest entries.
 */
const NEWEST = 20;
const PAGE = 100;

export const nodeOf = (id: string) =>
  question([`nodes/${id}`], ["node", id], (signal) =>
    read(api.GET("/api/v1/admin/nodes/{id}", { params: { path: { id } }, signal })),
  );

export const driftOf = (id: string) =>
  question([`nodes/${id}`], ["node", id, "drift"], (signal) =>
    read(
      api.GET("/api/v1/admin/reconciliation/drift", {
        params: { query: { node_id: id, include_acknowledged: "true", limit: 1 } },
        signal,
      }),
    ),
  );

/** The common beginning of the cache keys of the queries about the node's current work. */
export const workKey = (id: string) => ["node", id, "work"] as const;

const work = (id: string): string[] => [`nodes/${id}`, workOf(`nodes/${id}`)];

/** The hub sends no events for a task that belongs to no operation, for example an inspection of the host. */
export const tasksOf = (id: string) =>
  unannounced(
    question(work(id), [...workKey(id), "tasks"], (signal) =>
      read(api.GET("/api/v1/admin/nodes/{id}/tasks", { params: { path: { id }, query: { limit: NEWEST } }, signal })),
    ),
  );

export const operationsOf = (id: string) =>
  question(work(id), [...workKey(id), "operations"], (signal) =>
    read(api.GET("/api/v1/admin/operations", { params: { query: { node_id: id, limit: NEWEST } }, signal })),
  );

export const allocationsOf = (id: string) =>
  question([`nodes/${id}`], ["node", id, "allocations"], (signal) =>
    read(api.GET("/api/v1/admin/allocations", { params: { query: { node_id: id, limit: NEWEST } }, signal })),
  );

export const recordsOf = (id: string) =>
  question([`nodes/${id}`], ["node", id, "records"], (signal) =>
    read(api.GET("/api/v1/admin/sanitization-records", { params: { query: { node_id: id, limit: NEWEST } }, signal })),
  );

/** Reads the node's open allocation as the tenant sees it. */
export const instanceOf = (id: string) =>
  question([`nodes/${id}`], ["node", id, "instance"], async (signal) => {
    const query = { node_id: id, limit: 1 };
    const { items } = await read(api.GET("/api/v1/admin/instances", { params: { query }, signal }));
    return items[0] ?? null;
  });

/** Reads the newest attempt of an external system to provision the node, with what the node still lacks. */
export const externalAttemptOf = (id: string) =>
  question([`nodes/${id}`], ["node", id, "external attempt"], async (signal) => {
    const query = { node_id: id, limit: 1 };
    const { items } = await read(api.GET("/api/v1/admin/external-attempts", { params: { query }, signal }));
    const newest = items[0];
    if (newest === undefined) return null;
    const params = { path: { id: newest.id } };
    return read(api.GET("/api/v1/admin/external-attempts/{id}", { params, signal }));
  });

/** Reads the node's open repair; a node has at most one. */
export const openRepairOf = (id: string) =>
  question([`nodes/${id}`], ["node", id, "repair"], async (signal) => {
    const query = { node_id: id, open: "true" as const, limit: 1 };
    const { items } = await read(api.GET("/api/v1/admin/repairs", { params: { query }, signal }));
    return items[0] ?? null;
  });

/** Reads all entries of the node's history, the newest first. */
export const historyOf = (id: string, kinds: readonly string[] | undefined) => {
  const query = { order: "newest" as const, kind: kinds?.join(","), limit: PAGE };
  return {
    about: work(id),
    key: ["node", id, "history", query],
    ask: (cursor: string | undefined, signal: AbortSignal) =>
      read(
        api.GET("/api/v1/admin/nodes/{id}/lifecycle", {
          params: { path: { id }, query: { ...query, cursor } },
          signal,
        }),
      ),
  };
};

/** The names of the console's cached data, such as `nodes`, that is reloaded after a person uses a verb of the node, such as cordon. */
export const changedBy = (id: string): string[] => [`nodes/${id}`, "nodes", "operations", "allocations", "repairs"];
