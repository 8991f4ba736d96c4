import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import classes from "./node.module.css";
import { changedBy, type Node } from "./node-questions.ts";

type Override = Node["health_overrides"][number];

/** The health overrides of the node, each of which keeps new work off it. A node without overrides has no such part. */
export function Overrides({ node }: { readonly node: Node }): ReactNode {
  if (node.health_overrides.length === 0) return null;
  const columns: readonly Column<Override>[] = [
    { id: "source", head: "Source", cell: ({ source }) => <code>{source}</code> },
    { id: "target", head: "Target", wide: true, cell: ({ target }) => target ?? "-" },
    { id: "reason", head: "Why", cell: ({ reason }) => <div className={classes.prose}>{reason}</div> },
    { id: "by", head: "By", wide: true, cell: ({ set_by: by }) => by },
    {
      id: "lifts",
      head: "Lifted by",
      cell: ({ needed_erase: erase }) =>
        erase === null ? "a person" : `an erase with evidence (${erase} or stronger), or a person`,
    },
    { id: "since", head: "Since", wide: true, cell: ({ since }) => <RelativeTime at={since} /> },
    { id: "verb", head: "", cell: ({ source }) => <Remove node={node} source={source} /> },
  ];
  return (
    <Section title="Health overrides">
      <DataTable
        label="Health overrides of the node"
        columns={columns}
        rows={node.health_overrides}
        rowKey={({ source }) => source}
      />
    </Section>
  );
}

const Remove = ({ node, source }: { readonly node: Node; readonly source: string }): ReactNode => (
  <VerbButton
    verb="Remove override"
    what={`${source} of ${node.hostname}`}
    effect="The hub may give the node new work, although the cause of the override stands."
    right="operate_nodes"
    changes={changedBy(node.id)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/nodes/{id}/remove-health-override", {
          params: { path: { id: node.id }, header: headers },
          body: { source, reason },
        }),
      )
    }
  />
);
