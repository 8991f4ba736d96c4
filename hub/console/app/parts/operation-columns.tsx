import type { Answer } from "../api/schema.ts";
import type { Column } from "./data-table.tsx";
import { OperationLink } from "./links.tsx";
import { RelativeTime } from "./relative-time.tsx";
import { StatusBadge } from "./status-badge.tsx";
import { words } from "./tones.ts";

type Row = Answer<"listOperations">["items"][number];

const reasonOf = ({ error_message: error, next_action: next, waiting_for: waits }: Row): string =>
  error === null ? (waits ?? "-") : `${error}${next === null ? "" : ` Next: ${next}`}`;

/** The columns of a list of operations. */
export const operationColumns = (siteName: (id: string | null) => string): readonly Column<Row>[] => [
  {
    id: "host",
    head: "Host",
    cell: ({ operation_id: id, hostname }) => <OperationLink id={id}>{hostname}</OperationLink>,
  },
  { id: "kind", head: "Operation", cell: ({ kind }) => words(kind) },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  {
    id: "stage",
    head: "Stage",
    wide: true,
    cell: ({ current_stage: stage, current_attempt: attempt }) =>
      attempt > 1 ? `${words(stage)} (attempt ${attempt})` : words(stage),
  },
  {
    id: "why",
    head: "Waits for, or failed because",
    wide: true,
    cell: (row) => <span title={reasonOf(row)}>{reasonOf(row)}</span>,
  },
  {
    id: "deadline",
    head: "Deadline",
    sort: "stage_deadline",
    wide: true,
    cell: ({ stage_deadline: at, status }) =>
      ["pending", "running", "compensating"].includes(status) ? <RelativeTime at={at} none="-" /> : "-",
  },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => siteName(id) },
  { id: "by", head: "By", wide: true, cell: ({ requested_by: by }) => by ?? "-" },
  {
    id: "requested",
    head: "Requested",
    sort: "requested_at",
    cell: ({ requested_at: at }) => <RelativeTime at={at} />,
  },
];
