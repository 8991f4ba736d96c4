import type { ReactNode } from "react";
import { useSiteName } from "../../api/sites.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { DriftLink, NodeLink, SiteLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import classes from "./overview.module.css";
import type { Overview } from "./overview-question.ts";

type Part = { readonly data: Overview };

const DRIFT: readonly Column<Overview["drift"][number]>[] = [
  {
    id: "severity",
    head: "Severity",
    cell: ({ severity }) => <StatusBadge status={severity} />,
  },
  { id: "rule", head: "What differs", cell: ({ rule }) => words(rule) },
  {
    id: "count",
    head: "Nodes",
    align: "end",
    cell: ({ count, rule, severity }) => (
      <DriftLink search={{ rule, severity }}>{count.toLocaleString("en")}</DriftLink>
    ),
  },
];

/** Lists the nodes that differ from their machines in MAAS and whose differences nobody has acknowledged. */
export function Drift({ data: { drift } }: Part): ReactNode {
  if (drift.length === 0) return null;
  return (
    <Section title="Differs from MAAS">
      <DataTable
        label="Drift by rule"
        columns={DRIFT}
        rows={drift}
        rowKey={({ rule, severity }) => `${rule} ${severity}`}
      />
    </Section>
  );
}

export function Breakers({ data: { breakers } }: Part): ReactNode {
  const siteName = useSiteName();
  if (breakers.length === 0) return null;
  const columns: readonly Column<Overview["breakers"][number]>[] = [
    { id: "site", head: "Site", cell: ({ site_id: id }) => <SiteLink id={id}>{siteName(id)}</SiteLink> },
    { id: "kind", head: "Breaker", cell: ({ kind }) => words(kind) },
    { id: "state", head: "State", cell: ({ state }) => <StatusBadge status={state} /> },
    {
      id: "why",
      head: "Why",
      cell: ({ would_move: nodes, move_limit: limit, in_service: all }) => (
        <div className={classes.prose}>
          {counted(nodes, "node")} of {all} would change status at once, and the limit is {limit}. The hub changes none
          until a person resets the breaker.
        </div>
      ),
    },
    { id: "since", head: "Tripped", cell: ({ tripped_at: at }) => <RelativeTime at={at} /> },
  ];
  return (
    <Section title="Open breakers">
      <DataTable
        label="Open breakers"
        columns={columns}
        rows={breakers}
        rowKey={({ site_id: id, kind }) => `${id} ${kind}`}
      />
    </Section>
  );
}

export function Certificates({ data: { certificates } }: Part): ReactNode {
  const { ending, ended, examples } = certificates;
  if (ending + ended === 0) return null;
  return (
    <Section title="Agents that cannot renew their certificates">
      <p className={classes.nothing}>
        {counted(ended, "certificate")} ended, {ending} end within four hours. An agent renews its certificate every
        day, so these agents cannot reach the hub:{" "}
        {examples.map(({ node_id: id, hostname }) => (
          <span key={id} className={classes.example}>
            <NodeLink id={id}>{hostname}</NodeLink>
          </span>
        ))}
      </p>
    </Section>
  );
}

export function Credentials({ data: { credentials, more_credentials: more } }: Part): ReactNode {
  const siteName = useSiteName();
  if (credentials.length === 0) return null;
  const columns: readonly Column<Overview["credentials"][number]>[] = [
    { id: "site", head: "Site", cell: ({ site_id: id }) => <SiteLink id={id}>{siteName(id)}</SiteLink> },
    { id: "credential", head: "Credential", cell: ({ credential }) => words(credential) },
    { id: "warning", head: "What is wrong", cell: ({ message }) => <div className={classes.prose}>{message}</div> },
    { id: "since", head: "Since", cell: ({ since }) => <RelativeTime at={since} /> },
  ];
  return (
    <Section title="Credentials that need a person">
      <DataTable
        label="Credentials that need a person"
        columns={columns}
        rows={credentials}
        rowKey={({ site_id, credential, override_id }) => `${site_id} ${credential} ${override_id}`}
      />
      {more > 0 ? <p className={classes.more}>{counted(more, "more credential")} left out.</p> : null}
    </Section>
  );
}
