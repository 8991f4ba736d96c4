import { Checkbox, NativeSelect } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import { everyValue } from "../../api/every-value.ts";
import type { Body } from "../../api/schema.ts";
import { IssueFields, issueOf, NO_ISSUE } from "../../forms/issue-fields.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given } from "../../verbs/verb-dialog.tsx";
import type { Repair } from "./repair-questions.ts";
import { useVerbOf } from "./verb-of.ts";

type Outcome = Body<"reportRepair">["outcome"];
const OUTCOMES: Readonly<Record<Outcome, string>> = {
  completed: "completed: the machine is repaired",
  failed: "failed: the fault is still there",
  in_progress: "in progress: this attempt ends without success",
  manual: "manual: a person of the provider must look at it",
};
const ALL = everyValue<Outcome>({ completed: true, failed: true, in_progress: true, manual: true });

/** Reports what came of an attempt. Without a claim an operator reports only that the machine was repaired by hand. */
export function Report({ one }: { readonly one: Repair }): ReactNode {
  const shared = useVerbOf(one, "report");
  const [outcome, setOutcome] = useState<Outcome>("completed");
  const [isOther, setOther] = useState(false);
  const [issue, setIssue] = useState(NO_ISSUE);
  const isClaimed = one.state === "claimed";
  const run = ({ reason, headers }: Given) => {
    const other = isClaimed && isOther ? { machine_health_issue: issueOf(issue) } : {};
    return read(
      api.POST("/api/v1/admin/repairs/{id}/report", {
        params: { path: { id: one.id }, header: headers },
        body: { reason, outcome: isClaimed ? outcome : "completed", ...other },
      }),
    );
  };
  return (
    <VerbButton
      {...shared}
      verb="Report"
      effect={
        isClaimed
          ? "The report ends the attempt, its claim and its account on the host. Only the outcome completed leads out of repair."
          : "You say that the machine was repaired without a claim. It leaves its repair after its checks."
      }
      run={run}
    >
      {isClaimed ? (
        <>
          <NativeSelect
            label="Outcome"
            mb="xs"
            data={ALL.map((value) => ({ value, label: OUTCOMES[value] }))}
            value={outcome}
            onChange={(event) => setOutcome(event.currentTarget.value as Outcome)}
          />
          <Checkbox
            label="The repair found another fault"
            mb="xs"
            checked={isOther}
            onChange={(event) => setOther(event.currentTarget.checked)}
          />
          {isOther ? <IssueFields issue={issue} onChange={setIssue} /> : null}
        </>
      ) : null}
    </VerbButton>
  );
}
