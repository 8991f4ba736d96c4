import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Answer } from "../../api/schema.ts";
import { useMay } from "../../api/session.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Facts } from "../../parts/facts.tsx";
import { AllocationLink, RecordLink } from "../../parts/links.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Empty } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import { AllocationVerbs } from "../../verbs/allocation-verbs.tsx";
import classes from "./node.module.css";
import { allocationsOf, instanceOf, type Node, recordsOf } from "./node-questions.ts";

type Allocation = Answer<"listAllocations">["items"][number];
type Record = Answer<"listSanitizationRecords">["items"][number];

const ALLOCATIONS: readonly Column<Allocation>[] = [
  { id: "tenant", head: "Tenant", cell: ({ id, tenant }) => <AllocationLink id={id}>{tenant}</AllocationLink> },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "account", head: "Account", cell: ({ login_user: user, root }) => (root ? `${user}, with root` : user) },
  { id: "since", head: "Since", wide: true, cell: ({ created_at: at }) => <RelativeTime at={at} /> },
  {
    id: "ends",
    head: "Ends",
    wide: true,
    cell: ({ ended_at: ended, ends_at: ends }) => <RelativeTime at={ended ?? ends} none="open" />,
  },
  {
    id: "why",
    head: "Why",
    cell: ({ error_message: error, next_action: next, end_reason: end }) => (
      <div className={classes.prose}>{[error, next, end].filter((one) => one !== null).join(" ") || "-"}</div>
    ),
  },
  {
    id: "verbs",
    head: "",
    cell: (one) =>
      one.status === "ended" ? null : (
        <div className={classes.verbs}>
          <AllocationVerbs one={one} />
        </div>
      ),
  },
];

const RECORDS: readonly Column<Record>[] = [
  { id: "sequence", head: "Number", align: "end", cell: ({ sequence }) => sequence },
  { id: "verdict", head: "Verdict", cell: ({ verdict }) => <StatusBadge status={verdict} /> },
  { id: "tenant", head: "Tenant", cell: ({ tenant }) => tenant ?? "-" },
  { id: "mode", head: "Mode", wide: true, cell: ({ mode }) => words(mode) },
  { id: "trust", head: "Trust", wide: true, cell: ({ trust }) => words(trust) },
  {
    id: "signed",
    head: "Signed by",
    wide: true,
    cell: ({ signed_by_agent: both }) => (both ? "agent and hub" : "hub only"),
  },
  { id: "at", head: "Written", cell: ({ created_at: at }) => <RelativeTime at={at} /> },
  {
    id: "print",
    head: "Document",
    cell: ({ record_id: id }) => <a href={`/api/v1/admin/sanitization-records/${id}/print`}>print</a>,
  },
  { id: "id", head: "Record", wide: true, cell: ({ record_id: id }) => <RecordLink id={id} /> },
];

/** Shows what the node's tenant sees of the node now. */
function InstanceOfNode({ id }: { readonly id: string }): ReactNode {
  const { data } = useQuery(instanceOf(id));
  if (data === undefined || data === null) return null;
  return (
    <Section title="As the tenant sees it">
      <Facts
        facts={[
          ["Status", <StatusBadge key="status" status={data.status} />],
          ["Why", data.status_reason],
          [
            "Instance of",
            <AllocationLink key="id" id={data.id}>
              {data.tenant}
            </AllocationLink>,
          ],
          ["Power", data.power_state ?? undefined],
          ["Zone", data.zone ?? undefined],
        ]}
      />
    </Section>
  );
}

/** Shows who has used the node, and the records of its cleaning after each use. */
export function UseTab({ node: { id } }: { readonly node: Node }): ReactNode {
  const may = useMay();
  const enabled = may("read_allocations");
  const allocations = useQuery({ ...allocationsOf(id), enabled });
  const records = useQuery({ ...recordsOf(id), enabled });
  if (!enabled)
    return (
      <Empty title="You may not see allocations and records" kind="forbidden">
        They need the right read_allocations. Ask an administrator for a role that has it.
      </Empty>
    );
  return (
    <>
      <InstanceOfNode id={id} />
      <Section title="Allocations">
        <Answered query={allocations} what="the allocations">
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="No tenant has used the node" kind="none" />
            ) : (
              <DataTable
                label="Allocations of the node"
                columns={ALLOCATIONS}
                rows={items}
                rowKey={({ id: key }) => key}
              />
            )
          }
        </Answered>
      </Section>
      <Section title="Sanitization records">
        <Answered query={records} what="the records">
          {({ items }) =>
            items.length === 0 ? (
              <Empty title="The node has no sanitization record" kind="none">
                A soft reset, a reimage and a full decommission write one.
              </Empty>
            ) : (
              <DataTable
                label="Sanitization records of the node"
                columns={RECORDS}
                rows={items}
                rowKey={(one) => one.record_id}
              />
            )
          }
        </Answered>
      </Section>
    </>
  );
}
