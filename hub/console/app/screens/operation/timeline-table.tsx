import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { words } from "../../parts/tones.ts";
import classes from "./operation.module.css";
import { StageState } from "./stage-details.tsx";
import type { Drawing, Row } from "./timeline-bars.ts";
import { barWords, took } from "./timeline-words.ts";

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "stage",
    head: "Stage",
    cell: ({ stage }) => (
      <span className={classes.stage}>
        <StageState state={stage.state} />
        {words(stage.stage)}
      </span>
    ),
  },
  { id: "state", head: "State", cell: ({ stage }) => words(stage.state) },
  {
    id: "began",
    head: "Began",
    wide: true,
    cell: ({ stage }) => <RelativeTime at={stage.segments[0]?.began_at} none="-" />,
  },
  {
    id: "took",
    head: "Took",
    align: "end",
    cell: ({ stage, seconds }) => (stage.state === "expected" ? "-" : took(seconds)),
  },
  {
    id: "usual",
    head: "Usually",
    align: "end",
    wide: true,
    cell: ({ stage: { usual } }) => (usual === null ? "-" : took(usual.median_seconds)),
  },
  {
    id: "attempts",
    head: "Attempts",
    align: "end",
    wide: true,
    cell: ({ bars }) => Math.max(0, ...bars.map(({ segment }) => segment.attempt)) || "-",
  },
  {
    id: "deadline",
    head: "Deadline",
    wide: true,
    cell: ({ stage }) => <RelativeTime at={stage.deadline} none="-" />,
  },
  {
    id: "segments",
    head: "Time in it",
    cell: ({ bars, stage }) => (
      <div className={classes.prose}>
        {bars.map((bar) => (
          <div key={`${bar.segment.began_at} ${bar.segment.state}`}>{barWords(bar)}</div>
        ))}
        {stage.message === null ? null : <div className={classes.fine}>{stage.message}</div>}
      </div>
    ),
  },
];

/** Shows the timeline as a table, with everything that the bars show. */
export const TimelineTable = ({ drawing }: { readonly drawing: Drawing }): ReactNode => (
  <DataTable label="The stages as a table" columns={COLUMNS} rows={drawing.rows} rowKey={({ stage }) => stage.stage} />
);
