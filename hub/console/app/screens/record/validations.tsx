import { NativeSelect, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Typed } from "../../verbs/verb-dialog.tsx";
import type { RecordAnswer } from "./record-question.ts";

type Validation = RecordAnswer["validations"][number];
type Result = Validation["result"];

const COLUMNS: readonly Column<Validation>[] = [
  {
    id: "result",
    head: "Result",
    cell: ({ result }) => <StatusBadge status={result} tone={result === "accepted" ? "good" : "bad"} />,
  },
  {
    id: "by",
    head: "By",
    cell: ({ validated_by: by, title, is_person: person }) =>
      `${by}${title === null ? "" : `, ${title}`}${person ? "" : " (a token)"}`,
  },
  { id: "reason", head: "Reason", cell: ({ reason }) => reason },
  { id: "at", head: "When", cell: ({ validated_at: at }) => <RelativeTime at={at} /> },
];

const NOTHING = { result: "accepted" as Result, title: "" };

const Fields = ({ values, set }: Typed<typeof NOTHING>): ReactNode => (
  <>
    <NativeSelect
      label="Result"
      mb="xs"
      data={[
        { value: "accepted", label: "accepted" },
        { value: "rejected", label: "rejected" },
      ]}
      value={values.result}
      onChange={(event) => set({ result: event.currentTarget.value as Result })}
    />
    <TextInput
      label="Your title, if the record should have it"
      mb="xs"
      value={values.title}
      onChange={(event) => set({ title: event.currentTarget.value })}
    />
  </>
);

/** Lists the people who have accepted or rejected the sanitization record. */
export function Validations({
  answer: { record_id: id, hostname, sequence, validations },
}: {
  readonly answer: RecordAnswer;
}): ReactNode {
  return (
    <Section
      title="Validated by"
      aside={
        <VerbButton
          verb="Validate"
          what={`record ${sequence} of ${hostname}`}
          effect="Says that you have checked this record. The record keeps your name, and nobody can take the validation back."
          right="operate_nodes"
          changes={[`records/${id}`]}
          run={({ reason, headers, values: { result, title } }) =>
            read(
              api.POST("/api/v1/admin/sanitization-records/{id}/validations", {
                params: { path: { id }, header: headers },
                body: { result, reason, ...(title.trim() === "" ? {} : { title: title.trim() }) },
              }),
            )
          }
          initial={NOTHING}
          fields={Fields}
        />
      }
    >
      {validations.length === 0 ? (
        <Empty title="Nobody has validated the record" kind="none">
          A validation is a person's own statement, beside the verdict that the hub computes.
        </Empty>
      ) : (
        <DataTable label="The validations" columns={COLUMNS} rows={validations} rowKey={(one) => one.id} />
      )}
    </Section>
  );
}
