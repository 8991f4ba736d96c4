import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import type { Topic } from "../../live/topics.ts";

export type Timeline = Answer<"getOperationTimeline">;
export type TimelineStage = Timeline["stages"][number];
export type Segment = TimelineStage["segments"][number];
export type Onboarding = Answer<"getOnboarding">;
export type Decommission = Answer<"getDecommission">;
export type Operation = Onboarding | Decommission;

/** An event names the operation as an onboarding or a decommission, but the operation's URL does not say which of the two it is. */
const about = (id: string): Topic[] => [`onboardings/${id}`, `decommissions/${id}`];

export const timelineOf = (id: string) =>
  question(about(id), ["operation", id, "timeline"], (signal) =>
    read(api.GET("/api/v1/admin/operations/{id}/timeline", { params: { path: { id } }, signal })),
  );

export const operationOf = (id: string, kind: Timeline["kind"]) =>
  question<Operation>(about(id), ["operation", id, "record"], (signal) => {
    const given = { params: { path: { id } }, signal };
    return kind === "onboarding"
      ? read(api.GET("/api/v1/admin/onboardings/{id}", given))
      : read(api.GET("/api/v1/admin/decommissions/{id}", given));
  });

/** The names of the console's cached data, such as `nodes`, that is reloaded after a person uses a verb of the operation, such as retry. */
export const changedBy = (id: string): Topic[] => [...about(id), "operations", "nodes", "batches"];
