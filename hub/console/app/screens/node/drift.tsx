import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useMay } from "../../api/session.ts";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { ResolveDrift } from "../../verbs/resolve-drift.tsx";
import classes from "./node.module.css";
import { type Drift, driftOf, type Node } from "./node-questions.ts";

/** Shows how the node differs from its machine in MAAS, and what a person can do about it. */
export function DriftOfNode({ node }: { readonly node: Node }): ReactNode {
  const may = useMay();
  const { data } = useQuery({ ...driftOf(node.id), enabled: may("read_fleet") });
  const drift = data?.items[0];
  return drift === undefined || drift.drift_details === null ? null : (
    <OneDrift node={node} drift={drift} details={drift.drift_details} />
  );
}

function OneDrift({
  node,
  drift: { acknowledged },
  details,
}: {
  readonly node: Node;
  readonly drift: Drift;
  readonly details: NonNullable<Drift["drift_details"]>;
}): ReactNode {
  return (
    <Section title="Differs from its machine in MAAS">
      <div className={classes.drift}>
        <p>
          <StatusBadge status={details.severity} /> <strong>{words(details.rule)}</strong>, since{" "}
          <RelativeTime at={details.detected_at} />: {details.message}
        </p>
        <p className={classes.fine}>
          Expected {details.expected}; the machine is {details.maas_status}.{" "}
          {details.action === "none" ? null : `The hub's action: ${words(details.action)}.`} {details.held_back}
        </p>
        {acknowledged === null ? (
          <div className={classes.verbs}>
            <ResolveDrift
              nodeId={node.id}
              hostname={node.hostname}
              status={node.status}
              maasStatus={node.maas?.status}
            />
          </div>
        ) : (
          <p>
            Acknowledged by {acknowledged.by}, <RelativeTime at={acknowledged.at} />: {acknowledged.reason}
          </p>
        )}
      </div>
    </Section>
  );
}
