import { api, read } from "../../api/client.ts";
import { queryClient, question, unannounced } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import type { Topic } from "../../live/topics.ts";

export type Timeline = Answer<"getOperationTimeline">;
export type TimelineStage = Timeline["stages"][number];
export type Segment = TimelineStage["segments"][number];
export type Onboarding = Answer<"getOnboarding">;
export type Decommission = Answer<"getDecommission">;
export type Operation = Onboarding | Decommission;

/**
 * An event names the operation as an onboarding or as a decommission, and the address does not say which of them it is. No event tells of a move from
 * stage to stage, but events of the node often come with one.
 */
const about = (id: string, nodeId?: string | null): Topic[] => [
  `onboardings/${id}`,
  `decommissions/${id}`,
  ...(typeof nodeId === "string" ? [`nodes/${nodeId}`] : []),
];

/** The key of all questions about the operation. */
export const keyOf = (id: string) => ["operation", id] as const;
const timelineKey = (id: string) => [...keyOf(id), "timeline"] as const;

/** The node of the operation, as soon as a timeline has said it. */
const knownNode = (id: string): string | null | undefined =>
  queryClient.getQueryData<Timeline>(timelineKey(id))?.node_id;

export const timelineOf = (id: string) =>
  unannounced(
    question(about(id, knownNode(id)), timelineKey(id), (signal) =>
      read(api.GET("/api/v1/admin/operations/{id}/timeline", { params: { path: { id } }, signal })),
    ),
  );

export const operationOf = (id: string, kind: Timeline["kind"]) =>
  unannounced(
    question<Operation>(about(id, knownNode(id)), [...keyOf(id), "record"], (signal) => {
      const given = { params: { path: { id } }, signal };
      return kind === "onboarding"
        ? read(api.GET("/api/v1/admin/onboardings/{id}", given))
        : read(api.GET("/api/v1/admin/decommissions/{id}", given));
    }),
  );

/** The topics that a verb on the operation changes. */
export const changedBy = (id: string): Topic[] => [...about(id), "operations", "nodes", "batches"];
