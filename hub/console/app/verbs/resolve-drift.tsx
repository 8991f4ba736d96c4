import type { ReactNode } from "react";
import { api, read } from "../api/client.ts";
import { VerbButton } from "./verb-button.tsx";

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

interface Drifted {
  readonly nodeId: string;
  readonly hostname: string;
  readonly status: string;
  /** The status of the node's machine in MAAS; undefined if the hub does not know the status. */
  readonly maasStatus: string | undefined;
}

/** The hub returns a node to service only if the node is quarantined and its machine is deployed in MAAS. */
function whyNotReturned({ status, maasStatus }: Drifted): string | null {
  if (status !== "quarantined") return "Only a quarantined node can return to service.";
  return maasStatus === "Deployed" ? null : "The machine is not deployed in MAAS.";
}

/** The buttons for the verbs that end the drift of a node, which is its difference from its machine in MAAS. */
export const ResolveDrift = (drifted: Drifted): ReactNode =>
  (["acknowledge", "return_to_service"] as const).map((action) => (
    <VerbButton
      key={action}
      verb={ACTIONS[action].title}
      what={`the drift of ${drifted.hostname}`}
      effect={ACTIONS[action].effect}
      right="operate_nodes"
      disabledBecause={action === "return_to_service" ? whyNotReturned(drifted) : null}
      changes={["nodes", `nodes/${drifted.nodeId}`]}
      run={({ reason, headers }) =>
        read(
          api.POST("/api/v1/admin/reconciliation/drift/{node_id}/resolve", {
            params: { path: { node_id: drifted.nodeId }, header: headers },
            body: { action, reason },
          }),
        )
      }
    />
  ));
