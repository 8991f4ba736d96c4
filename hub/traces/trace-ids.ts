import { createHash, randomBytes } from "node:crypto";
import type { StageVisit } from "./current-stage.ts";

const half = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

/**
 * The id of a workflow's trace is the workflow's own id without hyphens, 32 hex digits. A trace id that is computed from the workflow's id lets all
 * hubs put their spans into the same trace without asking each other, even after a restart.
 */
export const traceIdOf = (workflowId: string): string => workflowId.replaceAll("-", "");

/** The id of the span of a whole workflow, 16 hex digits. */
export const workflowSpanId = (workflowId: string): string => half(`workflow ${workflowId}`);

/**
 * The id of the span of a stage, 16 hex digits. The id of a stage's span is computed from the workflow, the stage and its entry time, because the
 * spans of the stage's calls name it as their parent before the stage has ended.
 */
export const stageSpanId = ({ workflowId, stage, enteredAt }: StageVisit): string =>
  half(`stage ${workflowId} ${stage} ${enteredAt.getTime()}`);

/** A new id for the span of a call to another system, 16 hex digits. */
export const callSpanId = (): string => randomBytes(8).toString("hex");
