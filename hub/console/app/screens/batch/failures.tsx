import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { NodeLink, OperationLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import classes from "./batch.module.css";
import type { Batch } from "./batch-questions.ts";

type Failed = Batch["failures"][number];
type Refusal = Batch["refusals"][number];

const FAILURES: readonly Column<Failed>[] = [
  {
    id: "failure",
    head: "Failure",
    cell: ({ failure_class: failure, error_code: code }) => (
      <>
        <StatusBadge status="failed">{words(failure)}</StatusBadge>
        <div className={classes.fine}>
          <code>{code}</code>
        </div>
      </>
    ),
  },
  { id: "count", head: "Hosts", align: "end", cell: ({ hosts }) => hosts.length },
  {
    id: "next",
    head: "What to do",
    cell: ({ next_action: action, next_verb: verb }) => (
      <div className={classes.prose}>
        {action ?? "Look at the operations."} {verb === null ? null : <strong>Then: {words(verb)}.</strong>}
      </div>
    ),
  },
  {
    id: "hosts",
    head: "Which, and why",
    cell: ({ hosts }) => (
      <ul className={classes.hosts}>
        {hosts.map(({ onboarding_id: onboarding, decommission_id: decommission, hostname, message }) => (
          <li key={hostname}>
            <OperationLink id={onboarding ?? decommission ?? ""}>{hostname}</OperationLink>: {message ?? "no reason"}
          </li>
        ))}
      </ul>
    ),
  },
];

const REFUSALS: readonly Column<Refusal>[] = [
  {
    id: "node",
    head: "Node",
    cell: ({ node_id: id, hostname }) => <NodeLink id={id}>{hostname ?? undefined}</NodeLink>,
  },
  { id: "code", head: "Code", cell: ({ error_code: code }) => <code>{code}</code> },
  { id: "why", head: "Why", cell: ({ message }) => <div className={classes.prose}>{message}</div> },
];

/** Lists the failed hosts of the batch, in groups that need the same next action. */
export const Failures = ({ batch: { failures } }: { readonly batch: Batch }): ReactNode =>
  failures.length === 0 ? null : (
    <Section title="What failed">
      <DataTable
        label="Failures of the batch"
        columns={FAILURES}
        rows={failures}
        rowKey={(one) => [one.failure_class, one.error_code, one.next_verb, one.next_action].join(" ")}
      />
    </Section>
  );

/** Lists the nodes that the batch's request selected but for which no operation could begin. */
export const Refusals = ({ batch: { refusals } }: { readonly batch: Batch }): ReactNode =>
  refusals.length === 0 ? null : (
    <Section title="Nodes that were refused">
      <DataTable label="Refused nodes" columns={REFUSALS} rows={refusals} rowKey={({ node_id: id }) => id} />
    </Section>
  );
