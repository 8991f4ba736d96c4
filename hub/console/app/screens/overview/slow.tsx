import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { OperationLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import classes from "./overview.module.css";
import type { Overview } from "./overview-question.ts";

type Operation = Overview["slow"]["operations"][number];

const COLUMNS: readonly Column<Operation>[] = [
  {
    id: "host",
    head: "Host",
    cell: ({ operation_id: id, kind, hostname }) => (
      <OperationLink id={id} kind={kind}>
        {hostname}
      </OperationLink>
    ),
  },
  { id: "kind", head: "Operation", cell: ({ kind }) => words(kind) },
  { id: "status", head: "Status", wide: true, cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "stage", head: "Stage", cell: ({ current_stage: stage }) => words(stage) },
  {
    id: "reason",
    head: "Waits for",
    cell: ({ waiting_for: why }) => <div className={classes.prose}>{why ?? "-"}</div>,
  },
  {
    id: "since",
    head: "In the stage",
    wide: true,
    cell: ({ stage_entered_at: at }) => <RelativeTime at={at} none="-" />,
  },
  { id: "deadline", head: "Deadline", cell: ({ stage_deadline: at }) => <RelativeTime at={at} none="none" /> },
];

/** Lists the operations whose stage has used more than 80 % of its allowed time, the nearest deadline first. */
export function Slow({ data: { slow } }: { readonly data: Overview }): ReactNode {
  if (slow.count === 0) return null;
  return (
    <Section
      title="Slow against the deadline"
      aside={
        <span className={classes.fine}>{counted(slow.count, "operation")} beyond 80 % of the time of the stage</span>
      }
    >
      <DataTable
        label="Operations near the deadline of their stage"
        columns={COLUMNS}
        rows={slow.operations}
        rowKey={({ operation_id: id }) => id}
      />
      {slow.count > slow.operations.length ? (
        <p className={classes.more}>{counted(slow.count - slow.operations.length, "more operation")} left out.</p>
      ) : null}
    </Section>
  );
}
