import { Checkbox } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { IssueFields, issueOf, NO_ISSUE } from "../../forms/issue-fields.tsx";
import { RepairLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { changedBy, type Node, openRepairOf } from "./node-questions.ts";

function useOpenRepair({ id }: Node) {
  const may = useMay();
  return useQuery({ ...openRepairOf(id), enabled: may("read_repairs") }).data ?? null;
}

/** Says that the node is in repair, and links to the repair case. */
export function RepairOfNode({ node }: { readonly node: Node }): ReactNode {
  const repair = useOpenRepair(node);
  if (repair === null) return null;
  const { id, state, mode, issue, state_since: since, claimed_by: by } = repair;
  return (
    <Note
      tone="attention"
      title={mode === "online" ? "The node is in repair with its tenant" : "The node is in repair"}
    >
      <RepairLink id={id}>{issue.summary}</RepairLink>: {state}
      {state === "claimed" ? ` by ${by}` : ""} since <RelativeTime at={since} />. The node takes no new tenant before
      the repair is closed.
    </Note>
  );
}

/** A button with which an operator who knows of a fault opens a repair of the node. */
export function ReportFault({ node }: { readonly node: Node }): ReactNode {
  const repair = useOpenRepair(node);
  return (
    <VerbButton
      verb="Report a fault"
      what={`of ${node.hostname}`}
      effect="The machine gets a repair, and takes no new tenant until the repair is closed. A tenant who has it keeps it until the release."
      right="operate_nodes"
      disabledBecause={
        node.status === "deleted"
          ? "A deleted node has no repair."
          : repair === null
            ? null
            : `The node has an open repair, which is ${repair.state}.`
      }
      changes={changedBy(node.id)}
      run={({ reason, headers, values: { issue, request } }) =>
        read(
          api.POST("/api/v1/admin/repairs", {
            params: { header: headers },
            body: { node_id: node.id, machine_health_issue: issueOf(issue), request, reason },
          }),
        )
      }
      done={(answer: { readonly id: string }) => <RepairLink id={answer.id}>Look at the repair</RepairLink>}
      initial={{ issue: NO_ISSUE, request: false }}
      fields={({ values, set }) => (
        <>
          <IssueFields issue={values.issue} onChange={(issue) => set({ issue })} />
          <Checkbox
            label="Request the repair too, so that a repair team may claim the machine"
            mb="xs"
            checked={values.request}
            onChange={(event) => set({ request: event.currentTarget.checked })}
          />
        </>
      )}
    />
  );
}
