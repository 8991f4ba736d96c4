import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { NodesLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import classes from "./node.module.css";
import { changedBy, type Node } from "./node-questions.ts";
import { SetOverride } from "./set-override.tsx";

type Override = Node["health_overrides"][number];

/** Lists the health overrides of the node, each of which says what is wrong with the node, and offers the verbs that set and remove them. */
export function Overrides({ node }: { readonly node: Node }): ReactNode {
  if (node.health_overrides.length === 0 && node.status === "deleted") return null;
  const isReplaced = node.health_overrides.some(({ mode }) => mode === "replace");
  const columns: readonly Column<Override>[] = [
    {
      id: "source",
      head: "Source",
      cell: ({ source }) => (
        <NodesLink search={{ health_override: source }}>
          <code>{source}</code>
        </NodesLink>
      ),
    },
    { id: "target", head: "Target", wide: true, cell: ({ target }) => target ?? "-" },
    { id: "reason", head: "Why", cell: ({ reason }) => <div className={classes.prose}>{reason}</div> },
    {
      id: "prevents",
      head: "What it says",
      wide: true,
      cell: (one) => <div className={classes.prose}>{saysOf(one, isReplaced)}</div>,
    },
    { id: "by", head: "By", wide: true, cell: ({ set_by: by }) => by },
    {
      id: "lifts",
      head: "Lifted by",
      cell: ({ needed_erase: erase, expires_at: until }) => (
        <>
          {erase === null ? "a person" : `an erase with evidence (${erase} or stronger), or a person`}
          {until === null ? null : (
            <>
              , or <RelativeTime at={until} />
            </>
          )}
        </>
      ),
    },
    { id: "since", head: "Since", wide: true, cell: ({ since }) => <RelativeTime at={since} /> },
    { id: "verb", head: "", cell: (one) => <Remove node={node} one={one} /> },
  ];
  return (
    <Section title="Health overrides" aside={<SetOverride node={node} />}>
      {node.health_overrides.length === 0 ? (
        <p className={classes.note}>Nobody has said that something is wrong with the node.</p>
      ) : (
        <DataTable
          label="Health overrides of the node"
          columns={columns}
          rows={node.health_overrides}
          rowKey={({ source }) => source}
        />
      )}
    </Section>
  );
}

/** The text of a health override's alerts; Muster's own overrides have no alerts, and only keep new tenants off the node. */
function saysOf({ mode, alerts, in_force: inForce }: Override, isReplaced: boolean): string {
  const said = alerts === null ? "no new tenants" : alerts.map(({ id, message }) => `${id}: ${message}`).join("; ");
  const all = mode === "replace" ? `hides the other overrides${said === "" ? "" : `; ${said}`}` : said;
  if (!inForce) return `${all} (hidden by a replacement)`;
  const isHiddenInPart = isReplaced && mode !== "replace" && alerts !== null;
  return isHiddenInPart ? `${all} (hidden by a replacement, except that it keeps the tenant's allocation)` : all;
}

/** A health override that belongs to an open repair changes only with the repair. */
const isOfRepair = ({ set_by: by }: Override): boolean => by.startsWith("repair:");

const Remove = ({ node, one }: { readonly node: Node; readonly one: Override }): ReactNode => (
  <VerbButton
    verb="Remove override"
    what={`${one.source} of ${node.hostname}`}
    effect="The hub may give the node new work, although the cause of the override stands."
    right="operate_nodes"
    disabledBecause={isOfRepair(one) ? "The override belongs to the node's repair, and its verbs change it." : null}
    changes={changedBy(node.id)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/nodes/{id}/remove-health-override", {
          params: { path: { id: node.id }, header: headers },
          body: { source: one.source, reason },
        }),
      )
    }
  />
);
