import { NativeSelect, Textarea, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { everyValue } from "../api/every-value.ts";
import type { Body } from "../api/schema.ts";

type Issue = Body<"openRepair">["machine_health_issue"];

/** The fault of a machine as a person enters it in the fields of a form. */
export interface IssueValues {
  readonly category: Issue["category"];
  readonly summary: string;
  readonly details: string;
}
export const NO_ISSUE: IssueValues = { category: "Hardware", summary: "", details: "" };

const CATEGORIES = everyValue<Issue["category"]>({
  Hardware: true,
  Network: true,
  Performance: true,
  Storage: true,
  Software: true,
  Other: true,
});

/** The fault as the API takes it. */
export const issueOf = ({ category, summary, details }: IssueValues): Issue => ({
  category,
  summary: summary.trim(),
  details: details.trim() === "" ? null : details.trim(),
});

/** The form fields in which a person describes a fault of a machine. */
export const IssueFields = ({
  issue,
  onChange,
  required = true,
}: {
  readonly issue: IssueValues;
  readonly onChange: (issue: IssueValues) => void;
  /** False in a form in which the person may leave out the description of a fault, because there may be no fault. */
  readonly required?: boolean;
}): ReactNode => (
  <>
    <NativeSelect
      label="Kind of fault"
      mb="xs"
      data={[...CATEGORIES]}
      value={issue.category}
      onChange={(event) => onChange({ ...issue, category: event.currentTarget.value as Issue["category"] })}
    />
    <TextInput
      label="The fault in one sentence"
      mb="xs"
      required={required}
      withAsterisk={false}
      maxLength={1024}
      autoComplete="off"
      value={issue.summary}
      onChange={(event) => onChange({ ...issue, summary: event.currentTarget.value })}
    />
    <Textarea
      label="All that helps to find the fault"
      mb="xs"
      rows={3}
      maxLength={8192}
      value={issue.details}
      onChange={(event) => onChange({ ...issue, details: event.currentTarget.value })}
    />
  </>
);
