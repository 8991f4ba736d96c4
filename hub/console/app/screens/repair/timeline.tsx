import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Evidence } from "../../parts/evidence.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import type { Attempt } from "./attempts.ts";
import classes from "./repair.module.css";
import type { Entry } from "./repair-questions.ts";

const ATTEMPTS: readonly Column<Attempt>[] = [
  { id: "number", head: "Attempt", align: "end", cell: ({ number }) => number },
  { id: "by", head: "Claimed by", cell: ({ by }) => by },
  { id: "begin", head: "Claimed", cell: ({ claimedAt: at }) => <RelativeTime at={at} /> },
  { id: "access", head: "Account on the host", wide: true, cell: ({ hasAccess }) => (hasAccess ? "yes" : "no") },
  {
    id: "end",
    head: "Ended as",
    cell: ({ end }) =>
      end === null ? (
        <StatusBadge status="claimed">under way</StatusBadge>
      ) : (
        <StatusBadge status={end.as === "completed" ? "completed" : "failed"}>{words(end.as)}</StatusBadge>
      ),
  },
  { id: "ended", head: "Ended", wide: true, cell: ({ end }) => <RelativeTime at={end?.at} none="-" /> },
  { id: "said", head: "What was reported", cell: ({ end }) => <div className={classes.prose}>{end?.said ?? "-"}</div> },
];

export const Attempts = ({ attempts }: { readonly attempts: readonly Attempt[] }): ReactNode => (
  <Section title="Attempts">
    {attempts.length === 0 ? (
      <Empty title="Nobody has claimed the machine yet" kind="none">
        An attempt begins with a claim, and ends with its report or with the end of the claim.
      </Empty>
    ) : (
      <DataTable
        label="Attempts at the machine"
        columns={ATTEMPTS}
        rows={attempts}
        rowKey={({ number, claimedAt }) => `${number} ${claimedAt}`}
      />
    )}
  </Section>
);

const ENTRIES: readonly Column<Entry>[] = [
  { id: "at", head: "When", cell: ({ at }) => <RelativeTime at={at} /> },
  { id: "entry", head: "What", cell: ({ entry }) => words(entry) },
  { id: "attempt", head: "Attempt", align: "end", wide: true, cell: ({ attempt }) => (attempt === 0 ? "-" : attempt) },
  { id: "actor", head: "By", wide: true, cell: ({ actor }) => actor },
  { id: "message", head: "Why", cell: ({ message }) => <div className={classes.prose}>{message}</div> },
  {
    id: "details",
    head: "Evidence",
    cell: ({ details }) =>
      Object.keys(details).length === 0 ? (
        "-"
      ) : (
        <details>
          <summary>Show</summary>
          <Evidence value={details} />
        </details>
      ),
  },
];

/** Lists the history of the repair case, the newest entry first. */
export const Timeline = ({ timeline }: { readonly timeline: readonly Entry[] }): ReactNode => (
  <Section title="Timeline">
    <DataTable
      label="Timeline of the repair"
      columns={ENTRIES}
      rows={timeline.toReversed()}
      rowKey={({ at, entry, attempt, message }) => `${at} ${entry} ${attempt} ${message}`}
    />
  </Section>
);
