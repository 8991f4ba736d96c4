import type { ReactNode } from "react";
import { everyValue } from "../api/every-value.ts";
import type { Answer } from "../api/schema.ts";
import { StatusBadge } from "./status-badge.tsx";
import { ToneBar } from "./tone-bar.tsx";
import { counted, toneOf, words } from "./tones.ts";

export type BatchSummary = Answer<"listOnboardingBatches">["items"][number];

const ORDER = everyValue<Answer<"listOperations">["items"][number]["status"]>({
  completed: true,
  reconciled: true,
  running: true,
  compensating: true,
  failed_retryable: true,
  failed_manual_intervention: true,
  cancelled: true,
  pending: true,
});

export const countsOf = ({
  counts,
}: Pick<BatchSummary, "counts">): readonly (readonly [status: string, count: number])[] =>
  ORDER.flatMap((status) => {
    const count = counts[status] ?? 0;
    return count === 0 ? [] : [[status, count] as const];
  });

/** Shows how many hosts of a batch have which status, as a bar and in words. */
export const BatchProgress = ({ batch }: { readonly batch: BatchSummary }): ReactNode => {
  const said = countsOf(batch)
    .map(([status, count]) => `${count} ${words(status)}`)
    .join(", ");
  return (
    <ToneBar
      label={`${counted(batch.total, "host")}: ${said}`}
      shares={countsOf(batch).map(([status, count]) => ({
        status,
        count,
        tone: status === "pending" ? "over" : toneOf(status),
      }))}
    />
  );
};

/** The console shows a finished batch as completed only if none of the batch's hosts waits for a person. */
export function BatchStatus({ batch: { paused, done, failed } }: { readonly batch: BatchSummary }): ReactNode {
  if (paused !== null) return <StatusBadge status="paused" />;
  if (!done) return <StatusBadge status="running" />;
  return failed === 0 ? <StatusBadge status="completed" /> : <StatusBadge status="failed">needs a person</StatusBadge>;
}
