import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Evidence } from "../../parts/evidence.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { words } from "../../parts/tones.ts";
import classes from "./operation.module.css";
import type { Operation } from "./operation-questions.ts";

type Event = Operation["events"][number];

const hasDetails = (details: unknown): boolean =>
  typeof details === "object" && details !== null && Object.keys(details).length > 0;

const COLUMNS: readonly Column<Event>[] = [
  { id: "at", head: "When", cell: ({ occurred_at: at }) => <RelativeTime at={at} /> },
  { id: "stage", head: "Stage", cell: ({ stage }) => words(stage) },
  { id: "attempt", head: "Attempt", align: "end", wide: true, cell: ({ attempt }) => attempt },
  { id: "status", head: "Outcome", cell: ({ status }) => words(status) },
  {
    id: "message",
    head: "What happened",
    cell: ({ message, details }) => (
      <div className={classes.prose}>
        {message ?? "-"}
        {hasDetails(details) ? (
          <details>
            <summary>Details</summary>
            <Evidence value={details} />
          </details>
        ) : null}
      </div>
    ),
  },
];

/** Lists every event of the operation, the newest first. The list of events proves what the bars of the operation's timeline show. */
export const History = ({ events }: { readonly events: readonly Event[] }): ReactNode => (
  <Section title="Events">
    <DataTable label="Events of the operation" columns={COLUMNS} rows={events.toReversed()} rowKey={({ id }) => id} />
  </Section>
);
