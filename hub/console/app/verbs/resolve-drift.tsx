import { type ReactNode, useState } from "react";
import { api, read } from "../api/client.ts";
import { AskButton } from "./verb-button.tsx";
import { VerbDialog } from "./verb-dialog.tsx";

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
type Action = keyof typeof ACTIONS;

interface Drifted {
  readonly nodeId: string;
  readonly hostname: string;
  readonly status: string;
  /** The status of the node's machine in MAAS; undefined if the hub knows none. */
  readonly maasStatus: string | undefined;
}

/** What a person has asked for: a verb and the drift of one node. */
export interface AskedDrift {
  readonly action: Action;
  readonly nodeId: string;
  readonly hostname: string;
}

/** The hub returns only a quarantined node to service, and only if its machine is deployed. */
function whyNotReturned({ status, maasStatus }: Drifted): string | null {
  if (status !== "quarantined") return "Only a quarantined node can return to service.";
  return maasStatus === "Deployed" ? null : "The machine is not deployed in MAAS.";
}

/** The buttons of the verbs that end the drift of a node. */
export const ResolveDrift = ({
  onAsk,
  ...drifted
}: Drifted & { readonly onAsk: (asked: AskedDrift) => void }): ReactNode =>
  (["acknowledge", "return_to_service"] as const).map((action) => (
    <AskButton
      key={action}
      verb={ACTIONS[action].title}
      what={`the drift of ${drifted.hostname}`}
      right="operate_nodes"
      disabledBecause={action === "return_to_service" ? whyNotReturned(drifted) : null}
      onAsk={() => onAsk({ action, nodeId: drifted.nodeId, hostname: drifted.hostname })}
    />
  ));

/**
 * The dialog of a verb about a drift. It belongs to the screen and not to the drift's own row: the hub refuses a verb when the drift is gone by then, and
 * the row goes with it, but the person must still read the refusal.
 */
export function useDriftDialog(): { readonly ask: (asked: AskedDrift) => void; readonly dialog: ReactNode } {
  const [asked, ask] = useState<AskedDrift | null>(null);
  if (asked === null) return { ask, dialog: null };
  const { action, nodeId, hostname } = asked;
  return {
    ask,
    dialog: (
      <VerbDialog
        key={`${action} ${nodeId}`}
        opened
        onClose={() => ask(null)}
        verb={ACTIONS[action].title}
        what={`the drift of ${hostname}`}
        effect={ACTIONS[action].effect}
        changes={["nodes", `nodes/${nodeId}`]}
        run={({ reason, headers }) =>
          read(
            api.POST("/api/v1/admin/reconciliation/drift/{node_id}/resolve", {
              params: { path: { node_id: nodeId }, header: headers },
              body: { action, reason },
            }),
          )
        }
      />
    ),
  };
}
