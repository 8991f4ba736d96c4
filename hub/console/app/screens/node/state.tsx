import type { ReactNode } from "react";
import { useSiteName } from "../../api/sites.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { NodesLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { DriftOfNode } from "./drift.tsx";
import { ExternalProvisioning } from "./external.tsx";
import { meaningOf } from "./meanings.ts";
import classes from "./node.module.css";
import type { Node } from "./node-questions.ts";
import { Overrides } from "./overrides.tsx";

type Lacking = Node["readiness"]["lacking"][number];
type Condition = Node["conditions"][number];

/** Shows the node's state: its identity, what keeps new work off it, its conditions, and how it differs from its machine in MAAS. */
export const StateTab = ({ node }: { readonly node: Node }): ReactNode => (
  <>
    <Schedulable node={node} />
    <ExternalProvisioning node={node} />
    <DriftOfNode node={node} />
    <Overrides node={node} />
    <Identity node={node} />
    <Conditions node={node} />
  </>
);

const LACKING: readonly Column<Lacking>[] = [
  { id: "type", head: "Condition", cell: ({ type }) => <code>{type}</code> },
  { id: "kind", head: "Lacks", cell: ({ kind }) => words(kind) },
  { id: "message", head: "What it is", cell: ({ message }) => <div className={classes.prose}>{message}</div> },
  { id: "since", head: "Since", wide: true, cell: ({ since }) => <RelativeTime at={since} /> },
  { id: "until", head: "Until", wide: true, cell: ({ until }) => <RelativeTime at={until} none="-" /> },
  { id: "next", head: "What to do", cell: ({ next_action: next }) => <div className={classes.prose}>{next}</div> },
];

function Schedulable({ node }: { readonly node: Node }): ReactNode {
  if (node.schedulable) return null;
  return (
    <Section title="Why the node takes no new work">
      <ul className={classes.reasons}>
        {node.unschedulable_reasons.map((reason) => (
          <li key={reason}>{reason}</li>
        ))}
      </ul>
      {node.readiness.lacking.length === 0 ? null : (
        <DataTable
          label="Conditions that the node lacks"
          columns={LACKING}
          rows={node.readiness.lacking}
          rowKey={({ type, group }) => `${type} ${group}`}
        />
      )}
    </Section>
  );
}

function Identity({ node }: { readonly node: Node }): ReactNode {
  const siteName = useSiteName();
  const { location, baseline, adoption, readiness } = node;
  const facts: Fact[] = [
    [
      "Site",
      node.site_id === null ? (
        "no site"
      ) : (
        <NodesLink key="site" search={{ site_id: node.site_id }}>
          {siteName(node.site_id)}
        </NodesLink>
      ),
    ],
    [
      "SKU",
      <NodesLink key="sku" search={{ sku_id: [node.sku_id] }}>
        {node.sku_id}
      </NodesLink>,
    ],
    ["GPUs", node.gpus_total],
    [
      "Room / rack / unit",
      [location.room, location.rack, location.unit].filter((one) => one !== null).join(" / ") || "-",
    ],
    ["Asset tag", node.asset_tag ?? "-"],
    ["Region", node.region_code],
    ["Address", <code key="host">{node.host === null ? "-" : `${node.host}:${node.port}`}</code>],
    ["Machine in MAAS", <code key="maas">{node.maas_system_id ?? "not bound"}</code>],
    ["Onboarding", words(node.onboarding_mode)],
    ["Generation", node.generation],
    ["Agent", node.agent_version ?? "none yet"],
    ["Agent heard", <RelativeTime key="heard" at={node.last_agent_contact_at} />],
    ["Certificate", certificateOf(node)],
    ["Cordon", node.cordon_reason === null ? "none" : `${node.cordon_reason} (${node.cordon_owner})`],
    ["Allocation", node.allocation === null ? "none" : `${node.allocation.tenant} (${words(node.allocation.status)})`],
    [
      "Readiness policy",
      readiness.policy.profile_name === null ? "none" : `of the profile ${readiness.policy.profile_name}`,
    ],
    ["Baseline", baselineOf(baseline)],
    ["Created", <RelativeTime key="created" at={node.created_at} />],
    ["Changed", <RelativeTime key="changed" at={node.updated_at} />],
    ["Node", <code key="id">{node.id}</code>],
    [
      "Adopted",
      adoption === null ? undefined : (
        <>
          <RelativeTime at={adoption.adopted_at} /> by {adoption.adopted_by}
          {adoption.past_unknown ? "; the past of the host is not known" : ""}
          {adoption.next_action === null ? "" : `. ${adoption.next_action}`}
        </>
      ),
    ],
  ];
  return (
    <Section title="Identity">
      <Facts facts={facts} />
      {adoption === null || adoption.differences.length === 0 ? null : (
        <ul className={classes.reasons} aria-label="Differences that the adoption accepted">
          {adoption.differences.map(({ kind, message }) => (
            <li key={kind}>{message}</li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** About an agent's certificate, the hub shows only what a node condition says: that two hosts used it, or that the agent is connected with it. */
function certificateOf({ conditions, agent_version: agent }: Node): string {
  const identity = conditions.find(({ type }) => type === "agent.identity");
  if (identity?.status === "False") return `blocked: ${identity.message}`;
  return agent === null ? "none yet" : "the agent renews it every day";
}

function baselineOf({ state, taken_at: at, missing_items: missing, problem }: Node["baseline"]): ReactNode {
  return (
    <>
      {words(state)}
      {at === null ? null : (
        <>
          , <RelativeTime at={at} />
        </>
      )}
      {missing.length === 0 ? null : `; lacks ${missing.join(", ")}`}
      {problem === null ? null : `; ${problem}`}
    </>
  );
}

const CONDITIONS: readonly Column<Condition>[] = [
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  {
    id: "type",
    head: "Condition",
    cell: ({ type }) => (
      <>
        <code>{type}</code>
        <div className={classes.fine}>{meaningOf(type)}</div>
      </>
    ),
  },
  {
    id: "why",
    head: "Why",
    cell: ({ reason, message }) => (
      <div className={classes.prose}>
        <code>{reason}</code> {message}
      </div>
    ),
  },
  { id: "source", head: "Source", wide: true, cell: ({ source }) => source },
  { id: "observed", head: "Observed", cell: ({ observed_at: at }) => <RelativeTime at={at} /> },
  { id: "expires", head: "Stale", wide: true, cell: ({ expires_at: at }) => <RelativeTime at={at} none="never" /> },
];

const Conditions = ({ node }: { readonly node: Node }): ReactNode => (
  <Section title="Conditions">
    <DataTable label="Conditions of the node" columns={CONDITIONS} rows={node.conditions} rowKey={({ type }) => type} />
    {node.conditions.length === 0 ? <p className={classes.note}>Nobody has reported a condition yet.</p> : null}
  </Section>
);
