import { Modal } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import { words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given } from "../../verbs/verb-dialog.tsx";
import { DecommissionButton } from "./decommission.tsx";
import { MachineBinding } from "./machine-binding.tsx";
import classes from "./node.module.css";
import { changedBy, type Node } from "./node-questions.ts";
import { type NodeVerb, whyNot } from "./node-verbs.ts";
import { ReportFault } from "./repair.tsx";

const PATH = {
  cordon: "cordon",
  uncordon: "uncordon",
  quarantine: "quarantine",
  lift_quarantine: "lift-quarantine",
  activate: "activate",
  revoke_certificates: "revoke-certificates",
  clear_reports: "clear-reports",
  baseline: "baseline",
} as const satisfies Partial<Record<NodeVerb, string>>;
type PlainVerb = keyof typeof PATH;

const EFFECTS: Readonly<Record<PlainVerb, string>> = {
  cordon: "The hub gives the node no new work, and leaves alone what runs on it.",
  uncordon: "The hub may give the node new work again.",
  quarantine: "The hub takes the node out of service until a person puts it back.",
  lift_quarantine: "You vouch for the node, and the hub puts it into service again.",
  activate: "The hub puts the retired node into service again.",
  revoke_certificates:
    "The hub accepts no certificate of the node any more, and disconnects its agent, until the node is enrolled or onboarded again.",
  clear_reports:
    "The hub forgets reports about the node: conditions of types that Muster does not know, readiness signals, and that the agent was noisy.",
  baseline:
    "The agent takes a new baseline of the host, with which each later turnover compares the host. Do it after a change by the site.",
};

const plain = (verb: PlainVerb, id: string, { reason, headers }: Given): Promise<unknown> =>
  read(
    api.POST(`/api/v1/admin/nodes/{id}/${PATH[verb]}`, {
      params: { path: { id }, header: headers },
      body: { reason },
    }),
  );

const Plain = ({ verb, node, final }: { verb: PlainVerb; node: Node; final?: boolean }): ReactNode => (
  <VerbButton
    verb={words(verb).replace(/^./, (letter) => letter.toUpperCase())}
    what={node.hostname}
    effect={EFFECTS[verb]}
    final={final ?? false}
    right="operate_nodes"
    disabledBecause={whyNot(verb, node)}
    changes={changedBy(node.id)}
    run={(given) => plain(verb, node.id, given)}
  />
);

/** The buttons for all verbs of a node, those of the daily work first. A verb that cannot apply says why. */
export function NodeVerbs({ node }: { readonly node: Node }): ReactNode {
  const [command, setCommand] = useState<string | null>(null);
  // The React key of each button is its verb, so a focused button never turns into the button of the opposite verb.
  const cordon = node.cordon_reason === null ? "cordon" : "uncordon";
  const quarantine = node.status === "quarantined" ? "lift_quarantine" : "quarantine";
  return (
    <>
      <div className={classes.verbs}>
        <Plain key={cordon} verb={cordon} node={node} />
        <Plain key={quarantine} verb={quarantine} node={node} />
        <Plain verb="activate" node={node} />
        <DecommissionButton mode="drain" node={node} />
        <DecommissionButton mode="soft_reset" node={node} />
        <DecommissionButton mode="storage_cleanup" node={node} />
        <DecommissionButton mode="reimage" node={node} />
        <DecommissionButton mode="release" node={node} />
        <DecommissionButton mode="remove" node={node} />
        <DecommissionButton mode="full_decommission" node={node} />
        <ReportFault node={node} />
      </div>
      <details className={classes.more}>
        <summary>Identity, baseline and reports</summary>
        <div className={classes.verbs}>
          <MachineBinding node={node} />
          <Plain verb="baseline" node={node} />
          <ReEnroll node={node} onCommand={setCommand} />
          <BootstrapCommand node={node} onCommand={setCommand} />
          <Plain verb="revoke_certificates" node={node} final />
          <Plain verb="clear_reports" node={node} />
        </div>
      </details>
      <Modal
        opened={command !== null}
        onClose={() => setCommand(null)}
        title={`Run this on ${node.hostname} as root`}
        size="xl"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <p className={classes.fine}>The command contains a token, and the hub does not show it again.</p>
        <pre className={classes.command}>{command}</pre>
      </Modal>
    </>
  );
}

interface WithCommand {
  readonly node: Node;
  readonly onCommand: (command: string) => void;
}

/**
 * The answer to a re-enrollment contains a token, so the request carries no idempotency key: the hub would store the answer of a request with such a
 * key.
 */
const ReEnroll = ({ node, onCommand }: WithCommand): ReactNode => (
  <VerbButton
    verb="Re-enroll"
    what={node.hostname}
    effect="The hub voids the identity of the node, and shows the command with which its host enrolls again. Any host that runs the command gets the identity, so shut a copy of the host down first."
    final
    right="operate_nodes"
    disabledBecause={whyNot("re_enroll", node)}
    changes={changedBy(node.id)}
    run={async ({ reason }) => {
      const answer = await read(
        api.POST("/api/v1/admin/nodes/{id}/re-enroll", { params: { path: { id: node.id } }, body: { reason } }),
      );
      onCommand(answer.bootstrap_command);
    }}
  />
);

const BootstrapCommand = ({ node, onCommand }: WithCommand): ReactNode => (
  <VerbButton
    verb="New bootstrap command"
    what={`for ${node.hostname}`}
    effect="The hub makes a new command that enrolls the host. The previous command becomes void."
    asksReason={false}
    right="operate_nodes"
    disabledBecause={whyNot("bootstrap_command", node)}
    changes={changedBy(node.id)}
    run={async () => {
      const answer = await read(
        api.POST("/api/v1/admin/nodes/{id}/bootstrap-command", { params: { path: { id: node.id } }, body: {} }),
      );
      onCommand(answer.bootstrap_command);
    }}
  />
);
