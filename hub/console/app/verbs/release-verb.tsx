import { Checkbox, NativeSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { api, read } from "../api/client.ts";
import { question } from "../api/query-client.ts";
import type { Answer } from "../api/schema.ts";
import { useMay } from "../api/session.ts";
import { FOR_A_FORM } from "../api/versioned.ts";
import { IssueFields } from "../forms/issue-fields.tsx";
import { RepairLink } from "../parts/links.tsx";
import parts from "../parts/parts.module.css";
import { Answered } from "../parts/states.tsx";
import { NOTHING_SAID, OUTCOMES, type Outcome, releaseBody, type Said } from "./release.ts";
import { VerbButton } from "./verb-button.tsx";
import type { Typed } from "./verb-dialog.tsx";

type Allocation = Answer<"listAllocations">["items"][number];
type Repair = Answer<"listRepairs">["items"][number];

const openRepairOf = (nodeId: string) =>
  question([], ["release", "open repair of", nodeId], async (signal) => {
    const query = { node_id: nodeId, open: "true" as const, limit: 1 };
    return (await read(api.GET("/api/v1/admin/repairs", { params: { query }, signal }))).items[0] ?? null;
  });

interface Props {
  readonly one: Allocation;
  readonly disabledBecause: string | null;
}

/**
 * Ends the allocation, and reports what is wrong with the machine or how its repair ended. The dialog sends nothing before the console knows whether
 * the allocation gives a repairer access, because the hub counts a repairer's release without an outcome as a failed attempt.
 */
export const Release = ({ one, disabledBecause }: Props): ReactNode => (
  <VerbButton
    verb="Release"
    what={`the allocation of ${one.hostname} to ${one.tenant}`}
    effect="The allocation ends, and the hub clears the node of the tenant as the node's profile says."
    final
    right="allocate"
    disabledBecause={disabledBecause}
    changes={["allocations", "nodes", "repairs", `allocations/${one.id}`, `nodes/${one.node_id}`]}
    run={({ reason, headers: header, values }) =>
      read(
        api.POST("/api/v1/admin/allocations/{id}/release", {
          params: { path: { id: one.id }, header },
          body: releaseBody(reason, values),
        }),
      )
    }
    initial={NOTHING_SAID}
    fields={(typed) => <WhatIsSaid one={one} {...typed} />}
    isReady={({ isAccess }) => isAccess !== null}
  />
);

function WhatIsSaid({ one, values, set }: { readonly one: Allocation } & Typed<Said>): ReactNode {
  const may = useMay();
  const enabled = may("read_repairs");
  const query = useQuery({ ...openRepairOf(one.node_id), ...FOR_A_FORM, enabled });
  if (!enabled) return <Fields access={null} values={values} set={set} />;
  return (
    <Answered query={query} what="the repair of the node">
      {(repair) => (
        <Fields access={repair?.access_allocation_id === one.id ? repair : null} values={values} set={set} />
      )}
    </Answered>
  );
}

interface FieldsProps extends Typed<Said> {
  /** The repair for which the allocation gives access to the host; null for a tenant's allocation. */
  readonly access: Repair | null;
}

function Fields({ access, values, set }: FieldsProps): ReactNode {
  const isAccess = access !== null;
  const isNew = values.isAccess !== isAccess;
  useEffect(() => {
    if (isNew) set({ isAccess });
  }, [isNew, isAccess, set]);
  return (
    <>
      {access === null ? null : <WhatCameOfIt access={access} values={values} set={set} />}
      <Checkbox
        label={access === null ? "The machine is faulty" : "The machine has another fault"}
        description={
          access === null
            ? "The machine then gets a repair in the same step, and takes no other tenant until the repair is closed. The site's setting decides whether the report also asks for the repair."
            : "The attempt then counts as failed, whatever else is reported."
        }
        mb="xs"
        checked={values.isFaulty}
        onChange={(event) => set({ isFaulty: event.currentTarget.checked })}
      />
      {values.isFaulty ? <IssueFields issue={values.issue} onChange={(issue) => set({ issue })} /> : null}
    </>
  );
}

/** The field for the repair's outcome gets the focus when it appears, because a release without an outcome counts a finished repair as failed. */
function WhatCameOfIt({ access, values, set }: { readonly access: Repair } & Typed<Said>): ReactNode {
  const outcome = useRef<HTMLSelectElement>(null);
  useEffect(() => outcome.current?.focus(), []);
  return (
    <>
      <p className={parts.dialogText}>
        The allocation is the access of a <RepairLink id={access.id}>repair</RepairLink>, so its release ends the
        attempt and reports the outcome.
      </p>
      <NativeSelect
        ref={outcome}
        label="What came of the repair"
        description="Without an outcome the attempt counts as failed."
        mb="xs"
        data={[
          { value: "", label: "Not known" },
          ...Object.entries(OUTCOMES).map(([value, label]) => ({ value, label })),
        ]}
        value={values.outcome}
        onChange={(event) => set({ outcome: event.currentTarget.value as Outcome | "" })}
      />
    </>
  );
}
