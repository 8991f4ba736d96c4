import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Section } from "../../parts/page-head.tsx";
import classes from "../../parts/parts.module.css";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, type Tone, words } from "../../parts/tones.ts";
import type { Content } from "./record-question.ts";

type Part = { readonly record: Content };
type Step = Content["tasks"][number]["steps"][number];

const OUTCOMES: Readonly<Record<Step["outcome"], Tone>> = {
  ok: "good",
  failed: "bad",
  skipped: "over",
  unsupported: "attention",
  planned: "attention",
};

interface StepRow extends Omit<Step, "outcome"> {
  readonly id: string;
  readonly type: string;
  readonly outcome: Step["outcome"];
}

const stepsOf = ({ tasks }: Content): StepRow[] =>
  tasks.flatMap(({ task_id: id, type, error, steps }) =>
    error === null
      ? steps.map((step, n) => ({ ...step, id: `${id} ${n}`, type }))
      : [{ id, type, step: "-", target: "-", outcome: "failed" as const, message: error, evidence: {} }],
  );

const evidenceOf = ({ evidence }: StepRow): string =>
  Object.entries(evidence)
    .map(([name, value]) => `${words(name)}: ${value}`)
    .join("; ");

const STEPS: readonly Column<StepRow>[] = [
  { id: "task", head: "Task", cell: ({ type }) => words(type) },
  { id: "step", head: "Step", cell: ({ step }) => words(step) },
  { id: "target", head: "Target", wide: true, cell: ({ target }) => <code>{target}</code> },
  {
    id: "outcome",
    head: "Outcome",
    cell: ({ outcome }) => <StatusBadge status={outcome} tone={OUTCOMES[outcome]} />,
  },
  { id: "message", head: "What the agent says", cell: ({ message }) => message },
  { id: "evidence", head: "Evidence", wide: true, cell: evidenceOf },
];

/** What the agent did to the host. */
export function Steps({ record }: Part): ReactNode {
  const rows = stepsOf(record);
  if (rows.length === 0) return null;
  return (
    <Section title="Steps on the host">
      <DataTable label="The steps on the host" columns={STEPS} rows={rows} rowKey={({ id }) => id} />
    </Section>
  );
}

type Medium = Content["media"][number];
const shareOf = ({ bytes_treated: treated, bytes_total: total }: Medium): string =>
  treated === null || total === null || total === 0 ? "-" : `${Math.floor((100 * treated) / total)} %`;

const MEDIA: readonly Column<Medium>[] = [
  {
    id: "medium",
    head: "Medium",
    cell: ({ kind, maker, model }) => [kind, maker, model].filter((part) => part !== null).join(" "),
  },
  { id: "serial", head: "Serial number", cell: ({ serial }) => <code>{serial ?? "-"}</code> },
  {
    id: "method",
    head: "Method",
    cell: ({ method, technique }) => (technique === null ? method : `${method}, ${technique}`),
  },
  { id: "share", head: "Treated", align: "end", cell: shareOf },
  {
    id: "tool",
    head: "Tool",
    wide: true,
    cell: ({ tool, tool_version: version }) => [tool, version].filter(Boolean).join(" ") || "-",
  },
  {
    id: "check",
    head: "Verification",
    cell: ({ verification, verification_result: result }) => [verification, result].filter(Boolean).join(": ") || "-",
  },
];

export const Media = ({ record: { media } }: Part): ReactNode =>
  media.length === 0 ? null : (
    <Section title="Media">
      <DataTable
        label="The media"
        columns={MEDIA}
        rows={media}
        rowKey={(one) => `${one.source} ${one.serial} ${one.model}`}
      />
    </Section>
  );

type Gpu = Content["gpus"][number];
const GPUS: readonly Column<Gpu>[] = [
  { id: "gpu", head: "GPU", cell: ({ uuid }) => <code>{uuid}</code> },
  { id: "level", head: "Shown", cell: ({ level }) => (level === null ? "nothing" : words(level)) },
  { id: "share", head: "Overwritten", align: "end", cell: ({ share }) => `${Math.floor(share * 100)} %` },
  {
    id: "required",
    head: "Required",
    cell: ({ required_level: level, required_share: share }) =>
      level === null ? "-" : `${words(level)}${share === null ? "" : `, ${Math.floor(share * 100)} %`}`,
  },
];

export const Gpus = ({ record: { gpus } }: Part): ReactNode =>
  gpus.length === 0 ? null : (
    <Section title="GPUs">
      <DataTable label="The GPUs" columns={GPUS} rows={gpus} rowKey={({ uuid }) => uuid} />
    </Section>
  );

type Item = NonNullable<Content["residue"]>["items"][number];
const ITEM_TONES: Readonly<Record<Item["status"], Tone>> = { clean: "good", found: "bad", unreadable: "attention" };
const RESIDUE: readonly Column<Item>[] = [
  { id: "item", head: "Looked at", cell: ({ item }) => words(item) },
  {
    id: "status",
    head: "Result",
    cell: ({ status }) => <StatusBadge status={status} tone={ITEM_TONES[status]} />,
  },
  {
    id: "names",
    head: "Found",
    cell: ({ names, more, reason }) =>
      [...names, more > 0 ? `${more} more` : null, reason].filter((part) => part !== null).join(", ") || "-",
  },
];

/**
 * Shows what a tenant left on the host: the result of the comparison, after the cleaning, with the state of the clean host. Kinds of host state that
 * are as before the first tenant are listed only by name.
 */
export function Residue({ record: { residue } }: Part): ReactNode {
  if (residue === null) return null;
  const clean = residue.items.filter(({ status }) => status === "clean");
  const others = residue.items.filter(({ status }) => status !== "clean");
  return (
    <Section title={`Residue: ${words(residue.verdict)}`}>
      {others.length === 0 ? null : (
        <DataTable label="The residue" columns={RESIDUE} rows={others} rowKey={({ item }) => item} />
      )}
      {clean.length === 0 ? null : (
        <p className={classes.prose}>
          {counted(clean.length, "kind")} of host state as before the first tenant:{" "}
          {clean.map(({ item }) => words(item)).join(", ")}.
        </p>
      )}
    </Section>
  );
}
