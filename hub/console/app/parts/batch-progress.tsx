import type { ReactNode } from "react";
import type { Answer } from "../api/schema.ts";
import classes from "./batch-progress.module.css";
import { StatusBadge } from "./status-badge.tsx";
import { counted, toneOf, words } from "./tones.ts";

export type BatchSummary = Answer<"listOnboardingBatches">["items"][number];

const ORDER = [
  "completed",
  "reconciled",
  "running",
  "compensating",
  "failed_retryable",
  "failed_manual_intervention",
  "cancelled",
  "pending",
] as const;

export const countsOf = ({
  counts,
}: Pick<BatchSummary, "counts">): readonly (readonly [status: string, count: number])[] =>
  ORDER.flatMap((status) => {
    const count = counts[status] ?? 0;
    return count === 0 ? [] : [[status, count] as const];
  });

/** How many hosts of a batch have which status, as a bar and in words. */
export const BatchProgress = ({ batch }: { readonly batch: BatchSummary }): ReactNode => {
  const said = countsOf(batch)
    .map(([status, count]) => `${count} ${words(status)}`)
    .join(", ");
  return (
    <div className={classes.bar} role="img" aria-label={`${counted(batch.total, "host")}: ${said}`} title={said}>
      {countsOf(batch).map(([status, count]) => (
        <span key={status} data-tone={status === "pending" ? "over" : toneOf(status)} style={{ flexGrow: count }} />
      ))}
    </div>
  );
};

/** A finished batch is completed only if none of its hosts waits for a person. */
export function BatchStatus({ batch: { paused, done, failed } }: { readonly batch: BatchSummary }): ReactNode {
  if (paused !== null) return <StatusBadge status="paused" />;
  if (!done) return <StatusBadge status="running" />;
  return failed === 0 ? <StatusBadge status="completed" /> : <StatusBadge status="failed">needs a person</StatusBadge>;
}
