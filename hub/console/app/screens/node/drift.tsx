import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { type Tone, words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import classes from "./node.module.css";
import { changedBy, type Drift, driftOf, type Node } from "./node-questions.ts";

const SEVERITIES: Readonly<Record<string, Tone>> = { critical: "bad", high: "bad", warning: "attention", info: "over" };

/** How the node differs from its machine in MAAS, and what a person can do about it. */
export function DriftOfNode({ node }: { readonly node: Node }): ReactNode {
  const may = useMay();
  const { data } = useQuery({ ...driftOf(node.id), enabled: may("read_fleet") });
  const drift = data?.items[0];
  if (drift === undefined || drift.drift_details === null) return null;
  return <OneDrift node={node} drift={drift} details={drift.drift_details} />;
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
          <StatusBadge status={details.severity} tone={SEVERITIES[details.severity] ?? "over"} />{" "}
          <strong>{words(details.rule)}</strong>, since <RelativeTime at={details.detected_at} />: {details.message}
        </p>
        <p className={classes.fine}>
          Expected {details.expected}; the machine is {details.maas_status}.{" "}
          {details.action === "none" ? null : `The hub's action: ${words(details.action)}.`} {details.held_back}
        </p>
        {acknowledged === null ? (
          <div className={classes.verbs}>
            <Resolve node={node} action="acknowledge" disabledBecause={null} />
            <Resolve node={node} action="return_to_service" disabledBecause={whyNotReturned(node)} />
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

/** The hub returns only a quarantined node to service, and only if its machine is deployed. */
function whyNotReturned({ status, maas }: Node): string | null {
  if (status !== "quarantined") return "Only a quarantined node can return to service.";
  return maas?.status === "Deployed" ? null : "The machine is not deployed in MAAS.";
}

const ACTIONS = {
  acknowledge: {
    title: "Acknowledge",
    effect: "The drift is known, and nothing is to be done while it stays the same.",
  },
  return_to_service: {
    title: "Return to service",
    effect: "The cause is gone, and the hub makes the node active again.",
  },
} as const;

const Resolve = ({
  node,
  action,
  disabledBecause,
}: {
  readonly node: Node;
  readonly action: keyof typeof ACTIONS;
  readonly disabledBecause: string | null;
}): ReactNode => (
  <VerbButton
    verb={ACTIONS[action].title}
    what={`the drift of ${node.hostname}`}
    effect={ACTIONS[action].effect}
    right="operate_nodes"
    disabledBecause={disabledBecause}
    changes={changedBy(node.id)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/reconciliation/drift/{node_id}/resolve", {
          params: { path: { node_id: node.id }, header: headers },
          body: { action, reason },
        }),
      )
    }
  />
);
