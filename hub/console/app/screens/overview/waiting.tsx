import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { NodesLink, OperationLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import type { Group } from "./group-operations.ts";
import classes from "./overview.module.css";
import type { Overview } from "./overview-question.ts";
import { ResolveButton } from "./resolve-group.tsx";

const COLUMNS: readonly Column<Group>[] = [
  {
    id: "failure",
    head: "Failure",
    cell: ({ failure_class: failure, error_code: code }) => (
      <>
        <StatusBadge status="failed">{words(failure)}</StatusBadge>
        <div className={classes.code}>{code}</div>
      </>
    ),
  },
  {
    id: "count",
    head: "Hosts",
    align: "end",
    cell: ({ count, failure_class: failure }) => <NodesLink search={{ failure_class: [failure] }}>{count}</NodesLink>,
  },
  {
    id: "next",
    head: "What to do",
    cell: ({ next_action: action, next_verb: verb }) => (
      <div className={classes.prose}>
        {action ?? "Look at the operation."}
        {verb === null ? null : (
          <div className={classes.verb}>
            then: <strong>{words(verb)}</strong>
          </div>
        )}
      </div>
    ),
  },
  { id: "resolve", head: "All of them", cell: (group) => <ResolveButton group={group} /> },
  { id: "oldest", head: "Oldest", wide: true, cell: ({ oldest_at: at }) => <RelativeTime at={at} /> },
  {
    id: "examples",
    head: "For example",
    cell: ({ examples, count }) => (
      <>
        {examples.map(({ operation_id: id, kind, hostname }) => (
          <span key={id} className={classes.example}>
            <OperationLink id={id} kind={kind}>
              {hostname}
            </OperationLink>
          </span>
        ))}
        {count > examples.length ? <span className={classes.fine}> and {count - examples.length} more</span> : null}
      </>
    ),
  },
];

/** Lists the failed operations that wait for a person, in groups that need the same next action. */
export function Waiting({ data }: { readonly data: Overview }): ReactNode {
  const total = data.waiting.reduce((all, { count }) => all + count, 0);
  if (total === 0)
    return (
      <Section title="Needs a person">
        <p className={classes.nothing}>
          <StatusBadge status="ok">Nothing</StatusBadge> No failed operation waits for a person.
        </p>
      </Section>
    );
  return (
    <Section title="Needs a person" aside={<span className={classes.fine}>{counted(total, "operation")}</span>}>
      <DataTable
        label="Failed operations by failure and next action"
        columns={COLUMNS}
        rows={data.waiting}
        rowKey={({ failure_class, error_code, next_action, next_verb }) =>
          [failure_class, error_code, next_action, next_verb].join(" ")
        }
      />
      {data.more_waiting > 0 ? (
        <p className={classes.more}>{counted(data.more_waiting, "more group")} left out.</p>
      ) : null}
    </Section>
  );
}
