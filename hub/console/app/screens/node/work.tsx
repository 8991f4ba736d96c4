import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../api/schema.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { OperationLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { Refresh } from "../../parts/refresh.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { type Tone, words } from "../../parts/tones.ts";
import classes from "./node.module.css";
import { type Node, operationsOf, type Task, tasksOf, workKey } from "./node-questions.ts";

type Operation = Answer<"listOperations">["items"][number];

const TASK_TONES: Readonly<Record<Task["state"], Tone>> = {
  queued: "busy",
  offered: "busy",
  running: "busy",
  cancelling: "busy",
  succeeded: "good",
  failed: "bad",
  cancelled: "over",
  expired: "attention",
};

const messagesOf = ({ error_message: error, result }: Task): string => {
  if (error !== null) return error;
  const steps = typeof result === "object" && result !== null && "steps" in result ? result.steps : [];
  return Array.isArray(steps)
    ? steps.flatMap((step) => (typeof step?.message === "string" ? [step.message] : [])).join(" ")
    : "";
};

/** The plan of a task says only what the task would do, so the screen marks a plan and never shows it as work that was done. */
const TASKS: readonly Column<Task>[] = [
  { id: "at", head: "When", cell: ({ created_at: at }) => <RelativeTime at={at} /> },
  {
    id: "type",
    head: "Task",
    cell: ({ type, plan }) => (
      <>
        <code>{type}</code>{" "}
        {plan ? (
          <StatusBadge status="plan" tone="over">
            plan only
          </StatusBadge>
        ) : null}
      </>
    ),
  },
  { id: "state", head: "State", cell: ({ state }) => <StatusBadge status={state} tone={TASK_TONES[state]} /> },
  { id: "attempts", head: "Attempts", align: "end", wide: true, cell: ({ attempts }) => attempts },
  {
    id: "result",
    head: "Result",
    cell: (task) => (
      <div className={classes.prose}>
        {task.error_code === null ? null : <code>{task.error_code}</code>} {messagesOf(task)}
      </div>
    ),
  },
  { id: "ended", head: "Ended", wide: true, cell: ({ finished_at: at }) => <RelativeTime at={at} none="not yet" /> },
];

const OPERATIONS: readonly Column<Operation>[] = [
  {
    id: "kind",
    head: "Operation",
    cell: ({ operation_id: id, kind }) => <OperationLink id={id}>{words(kind)}</OperationLink>,
  },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "stage", head: "Stage", wide: true, cell: ({ current_stage: stage }) => words(stage) },
  {
    id: "why",
    head: "Waits for, or failed because",
    cell: ({ error_message: error, waiting_for: waits }) => (
      <div className={classes.prose}>{error ?? waits ?? "-"}</div>
    ),
  },
  { id: "by", head: "By", wide: true, cell: ({ requested_by: by }) => by ?? "-" },
  { id: "at", head: "Requested", cell: ({ requested_at: at }) => <RelativeTime at={at} /> },
];

/** Lists the node's newest operations and its agent's newest tasks. */
export function WorkTab({ node: { id } }: { readonly node: Node }): ReactNode {
  const operations = useQuery(operationsOf(id));
  const tasks = useQuery(tasksOf(id));
  return (
    <>
      <Section title="Operations">
        <Answered query={operations} what="the operations">
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="The node has had no operation" kind="none" />
            ) : (
              <DataTable
                label="Operations of the node"
                columns={OPERATIONS}
                rows={items}
                rowKey={({ operation_id: key }) => key}
              />
            )
          }
        </Answered>
      </Section>
      <Section title="Tasks of the agent" aside={<Refresh queryKey={workKey(id)} />}>
        <Answered query={tasks} what="the tasks">
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="The agent has had no task" kind="none" />
            ) : (
              <DataTable label="Newest tasks of the agent" columns={TASKS} rows={items} rowKey={({ id: key }) => key} />
            )
          }
        </Answered>
      </Section>
    </>
  );
}
