import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { absolute, RelativeTime } from "../../parts/relative-time.tsx";
import { ToneMark } from "../../parts/status-badge.tsx";
import { counted, type Tone, words } from "../../parts/tones.ts";
import classes from "./operation.module.css";
import type { TimelineStage } from "./operation-questions.ts";
import type { Bar, Row } from "./timeline-bars.ts";
import { secondsOfBar, took } from "./timeline-words.ts";

const TONES: Readonly<Record<TimelineStage["state"], Tone>> = {
  expected: "over",
  under_way: "busy",
  succeeded: "good",
  skipped: "over",
  returned: "attention",
  failed: "bad",
  undone: "over",
};

/** Marks the state of a stage by a shape and a colour. Text beside the mark says in words what state the stage has. */
export const StageState = ({ state }: { readonly state: TimelineStage["state"] }): ReactNode => (
  <span className={classes.mark} data-tone={TONES[state]} title={words(state)}>
    <ToneMark tone={TONES[state]} />
  </span>
);

const SEGMENTS: readonly Column<Bar>[] = [
  { id: "state", head: "What", cell: ({ segment }) => words(segment.state) },
  { id: "attempt", head: "Attempt", align: "end", cell: ({ segment }) => segment.attempt },
  {
    id: "from",
    head: "From",
    wide: true,
    cell: ({ segment }) => <time dateTime={segment.began_at}>{absolute(segment.began_at)}</time>,
  },
  {
    id: "to",
    head: "To",
    wide: true,
    cell: ({ segment: { ended_at: at } }) => (at === null ? "goes on" : <time dateTime={at}>{absolute(at)}</time>),
  },
  { id: "took", head: "Took", align: "end", cell: (bar) => took(secondsOfBar(bar)) },
  { id: "why", head: "Why", cell: ({ segment }) => <div className={classes.prose}>{segment.reason ?? "-"}</div> },
];

/**
 * Lists the segments of one stage, which are its times of working, waiting and retrying, with the stage's deadline, last message and usual duration.
 */
export function StageDetails({ row: { stage, bars } }: { readonly row: Row }): ReactNode {
  const { usual, deadline, message } = stage;
  return (
    <div className={classes.details}>
      <p>
        <strong>{words(stage.state)}</strong>
        {message === null ? null : <>: {message}</>}
      </p>
      {deadline === null ? null : (
        <p>
          Deadline of the stage: <RelativeTime at={deadline} />, {absolute(deadline)}.
        </p>
      )}
      <p>
        {usual === null
          ? "How long the stage usually takes is not known, because no finished operation of the kind at the site has run it."
          : `Usually ${took(usual.median_seconds)} (median), at most ${took(usual.p90_seconds)} in nine of ten operations; from ${counted(usual.runs, "operation")}.`}
      </p>
      {bars.length === 0 ? null : (
        <DataTable
          label={`Segments of the stage ${words(stage.stage)}`}
          columns={SEGMENTS}
          rows={bars}
          rowKey={({ segment }) => `${segment.began_at} ${segment.state}`}
        />
      )}
    </div>
  );
}
