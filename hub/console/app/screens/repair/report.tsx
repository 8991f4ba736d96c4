import { Checkbox, NativeSelect } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { everyValue } from "../../api/every-value.ts";
import type { Body } from "../../api/schema.ts";
import { IssueFields, issueOf, NO_ISSUE } from "../../forms/issue-fields.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given, Typed } from "../../verbs/verb-dialog.tsx";
import type { Repair } from "./repair-questions.ts";
import { useVerbOf } from "./verb-of.ts";

type Outcome = Body<"reportRepair">["outcome"];
const OUTCOMES: Readonly<Record<Outcome, string>> = {
  completed: "completed: the machine is repaired",
  failed: "failed: the fault is still there",
  in_progress: "in progress: this attempt ends without success",
  manual: "manual: a person of the provider must look at it",
};
const NOTHING = { outcome: "completed" as Outcome, isOther: false, issue: NO_ISSUE };
type Told = typeof NOTHING;
const ALL = everyValue<Outcome>({ completed: true, failed: true, in_progress: true, manual: true });

/** Reports what came of an attempt. For a repair that nobody has claimed, an operator can report only that the machine was repaired by hand. */
export function Report({ one }: { readonly one: Repair }): ReactNode {
  const shared = useVerbOf(one, "report");
  const isClaimed = one.state === "claimed";
  const run = ({ reason, headers, values: { outcome, isOther, issue } }: Given & Typed<Told>) => {
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
      initial={NOTHING}
      fields={(typed) => (isClaimed ? <Fields {...typed} /> : null)}
    />
  );
}

const Fields = ({ values, set }: Typed<Told>): ReactNode => (
  <>
    <NativeSelect
      label="Outcome"
      mb="xs"
      data={ALL.map((value) => ({ value, label: OUTCOMES[value] }))}
      value={values.outcome}
      onChange={(event) => set({ outcome: event.currentTarget.value as Outcome })}
    />
    <Checkbox
      label="The repair found another fault"
      mb="xs"
      checked={values.isOther}
      onChange={(event) => set({ isOther: event.currentTarget.checked })}
    />
    {values.isOther ? <IssueFields issue={values.issue} onChange={(issue) => set({ issue })} /> : null}
  </>
);
