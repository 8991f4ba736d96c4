import { Checkbox, NativeSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import { question } from "../../api/query-client.ts";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { IssueFields, NO_ISSUE } from "../../forms/issue-fields.tsx";
import { RepairLink } from "../../parts/links.tsx";
import parts from "../../parts/parts.module.css";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { OUTCOMES, type Outcome, releaseBody, type Said } from "./release.ts";

type Allocation = Answer<"getAllocation">;
type Repair = Answer<"listRepairs">["items"][number];

const NOTHING: Said = { isFaulty: false, issue: NO_ISSUE, outcome: "" };

const openRepairOf = (nodeId: string) =>
  question(["repairs", `nodes/${nodeId}`], ["repairs", "open of", nodeId], async (signal) => {
    const query = { node_id: nodeId, open: "true" as const, limit: 1 };
    return (await read(api.GET("/api/v1/admin/repairs", { params: { query }, signal }))).items[0] ?? null;
  });

interface Props {
  readonly one: Allocation;
  readonly disabledBecause: string | null;
}

/** Ends the allocation, and says what is wrong with the machine or what came of its repair. */
export function Release({ one, disabledBecause }: Props): ReactNode {
  const may = useMay();
  const [said, setSaid] = useState(NOTHING);
  const { data: repair } = useQuery({ ...openRepairOf(one.node_id), enabled: may("read_repairs") });
  const access = repair?.access_allocation_id === one.id ? repair : null;
  return (
    <VerbButton
      verb="Release"
      what={`the allocation of ${one.hostname} to ${one.tenant}`}
      effect="The allocation ends, and the hub clears the node of the tenant as the node's profile says."
      final
      right="allocate"
      disabledBecause={disabledBecause}
      changes={["allocations", "nodes", "repairs", `allocations/${one.id}`, `nodes/${one.node_id}`]}
      run={({ reason, headers: header }) =>
        read(
          api.POST("/api/v1/admin/allocations/{id}/release", {
            params: { path: { id: one.id }, header },
            body: releaseBody(reason, said, access !== null),
          }),
        )
      }
    >
      <Fields access={access} said={said} onChange={(more) => setSaid({ ...said, ...more })} />
    </VerbButton>
  );
}

function Fields({
  access,
  said,
  onChange,
}: {
  /** The repair whose access the allocation is; null for a tenant. */
  readonly access: Repair | null;
  readonly said: Said;
  readonly onChange: (more: Partial<Said>) => void;
}): ReactNode {
  return (
    <>
      {access === null ? null : <WhatCameOfIt access={access} said={said} onChange={onChange} />}
      <Checkbox
        label={access === null ? "The machine is faulty" : "The machine has another fault"}
        description={
          access === null
            ? "The machine then gets a repair in the same step, and takes no other tenant until the repair is closed. The site's setting decides whether the report also asks for the repair."
            : "The attempt then counts as failed, whatever else is reported."
        }
        mb="xs"
        checked={said.isFaulty}
        onChange={(event) => onChange({ isFaulty: event.currentTarget.checked })}
      />
      {said.isFaulty ? <IssueFields issue={said.issue} onChange={(issue) => onChange({ issue })} /> : null}
    </>
  );
}

function WhatCameOfIt({
  access,
  said,
  onChange,
}: {
  readonly access: Repair;
  readonly said: Said;
  readonly onChange: (more: Partial<Said>) => void;
}): ReactNode {
  return (
    <>
      <p className={parts.dialogText}>
        The allocation is the access of a <RepairLink id={access.id}>repair</RepairLink>, so its release ends the
        attempt and reports the outcome.
      </p>
      <NativeSelect
        label="What came of the repair"
        description="Without an outcome the attempt counts as failed."
        mb="xs"
        data={[
          { value: "", label: "Not known" },
          ...Object.entries(OUTCOMES).map(([value, label]) => ({ value, label })),
        ]}
        value={said.outcome}
        onChange={(event) => onChange({ outcome: event.currentTarget.value as Outcome | "" })}
      />
    </>
  );
}
