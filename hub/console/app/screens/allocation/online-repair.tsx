import { Checkbox } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { IssueFields, issueOf, NO_ISSUE } from "../../forms/issue-fields.tsx";
import { RepairLink } from "../../parts/links.tsx";
import { words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";

const RISKS = [
  "The tenant accepts that data may be damaged",
  "The tenant accepts that the repair team may have access to the machine",
  "The tenant accepts that the instance may have to be deleted",
] as const;

const ACCEPTED = {
  accept_data_corruption_risk: true,
  accept_repair_team_access: true,
  accept_instance_deletion_risk: true,
} as const;

/**
 * Requests a repair of the machine while its tenant keeps it. The person must tick a separate box for each risk of the repair, and the browser
 * enforces that.
 */
export function OnlineRepair({ one }: { readonly one: Answer<"getAllocation"> }): ReactNode {
  return (
    <VerbButton
      verb="Online repair"
      what={`of ${one.hostname} for ${one.tenant}`}
      effect="The machine is repaired while the tenant keeps it. Until the repair ends, the allocation is released only by force."
      right="operate_nodes"
      disabledBecause={
        one.status === "active"
          ? null
          : `The allocation is ${words(one.status)}. Only an active tenant can have an online repair.`
      }
      changes={["repairs", "nodes", `nodes/${one.node_id}`, `allocations/${one.id}`]}
      run={({ reason, headers, values: { issue, gives } }) =>
        read(
          api.POST("/api/v1/admin/online-repairs", {
            params: { header: headers },
            body: {
              allocation_id: one.id,
              machine_health_issue: issueOf(issue),
              acknowledgements: ACCEPTED,
              release_on_failure: gives,
              reason,
            },
          }),
        )
      }
      done={(answer: { readonly id: string }) => <RepairLink id={answer.id}>Look at the repair</RepairLink>}
      initial={{ issue: NO_ISSUE, gives: false }}
      fields={({ values, set }) => (
        <>
          <IssueFields issue={values.issue} onChange={(issue) => set({ issue })} />
          {RISKS.map((risk) => (
            <Checkbox key={risk} label={risk} mb="xs" required />
          ))}
          <Checkbox
            label="Release the allocation by itself if the repair fails"
            mb="xs"
            checked={values.gives}
            onChange={(event) => set({ gives: event.currentTarget.checked })}
          />
        </>
      )}
    />
  );
}
