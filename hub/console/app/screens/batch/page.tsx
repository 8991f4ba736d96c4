import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useSiteName } from "../../api/sites.ts";
import { BatchProgress, BatchStatus, countsOf } from "../../parts/batch-progress.tsx";
import { Evidence } from "../../parts/evidence.tsx";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { useListPages } from "../../parts/list-pages.ts";
import { operationColumns } from "../../parts/operation-columns.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Answered, Empty, Failure, Loading } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import { VirtualTable } from "../../parts/virtual-table.tsx";
import classes from "./batch.module.css";
import { type Batch, batchOf, hostsOf, type Kind } from "./batch-questions.ts";
import { Failures, Refusals } from "./failures.tsx";
import { batchRoute } from "./route.ts";
import { BatchVerbs } from "./verbs.tsx";

/** Shows one batch: how many hosts have which status, what failed and what to do, and each operation of the batch. */
export function Page(): ReactNode {
  const { id, kind } = batchRoute.useParams();
  return kind === "onboarding" || kind === "decommission" ? (
    <Known id={id} kind={kind} />
  ) : (
    <Empty title={`There are no batches of the kind ${kind}`} kind="not_found" />
  );
}

function Known({ id, kind }: { readonly id: string; readonly kind: Kind }): ReactNode {
  const query = useQuery(batchOf(kind, id));
  return (
    <Answered query={query} what="the batch">
      {(batch) => <Body batch={batch} />}
    </Answered>
  );
}

const Body = ({ batch }: { readonly batch: Batch }): ReactNode => (
  <>
    <PageHead
      title={`Batch of ${counted(batch.total, words(batch.mode ?? batch.kind))}`}
      beside={<BatchStatus batch={batch} />}
      below={
        <>
          requested <RelativeTime at={batch.requested_at} /> by {batch.requested_by ?? "the hub"}
        </>
      }
      actions={<BatchVerbs batch={batch} />}
    />
    <Progress batch={batch} />
    <Failures batch={batch} />
    <Refusals batch={batch} />
    <Hosts batch={batch} />
    <Record batch={batch} />
  </>
);

function Progress({ batch }: { readonly batch: Batch }): ReactNode {
  const { paused } = batch;
  return (
    <Section title="Progress">
      <div className={classes.progress}>
        <BatchProgress batch={batch} />
        <ul className={classes.counts}>
          {countsOf(batch).map(([status, count]) => (
            <li key={status}>
              <StatusBadge status={status} /> <strong>{count}</strong>
            </li>
          ))}
          {batch.refused === 0 ? null : (
            <li>
              <StatusBadge status="refused" /> <strong>{batch.refused}</strong>
            </li>
          )}
        </ul>
        {paused === null ? null : (
          <p className={classes.paused}>
            Paused <RelativeTime at={paused.since} />
            {paused.by === null ? "" : ` by ${paused.by}`}: {paused.reason} <strong>Next:</strong> {paused.next_action}
          </p>
        )}
      </div>
    </Section>
  );
}

const STATUSES = ["failed", "pending", "running", "completed", "cancelled"] as const;

function Hosts({ batch }: { readonly batch: Batch }): ReactNode {
  const { status } = batchRoute.useSearch();
  const navigate = useNavigate({ from: "/batches/$kind/$id" });
  const choose = (next: (typeof STATUSES)[number] | undefined): void =>
    void navigate({ search: { status: next }, replace: true, resetScroll: false });
  return (
    <Section
      title="Hosts"
      aside={
        // biome-ignore lint/a11y/useSemanticElements: the buttons are no fields of a form
        <div className={classes.statuses} role="group" aria-label="Hosts by status">
          {[undefined, ...STATUSES].map((one) => (
            <Button
              key={one ?? "all"}
              size="compact-xs"
              variant={one === status ? "light" : "default"}
              aria-pressed={one === status}
              onClick={() => choose(one)}
            >
              {one ?? "all"}
            </Button>
          ))}
        </div>
      }
    >
      <HostTable key={status ?? ""} id={batch.batch_id} status={status} />
    </Section>
  );
}

function HostTable({ id, status }: { readonly id: string; readonly status: string | undefined }): ReactNode {
  const siteName = useSiteName();
  const columns = useMemo(() => operationColumns(siteName).filter((one) => one.sort !== "requested_at"), [siteName]);
  const pages = useListPages(hostsOf(id, status));
  if (pages.isFirst)
    return pages.error === null ? <Loading what="the hosts" /> : <Failure error={pages.error} retry={pages.retry} />;
  if (pages.rows.length === 0)
    return <Empty title={status === undefined ? "The batch has no hosts" : `No host is ${status}`} kind="filtered" />;
  return (
    <VirtualTable
      label="Hosts of the batch"
      columns={columns}
      rows={pages.rows}
      rowKey={({ operation_id: key }) => key}
      rowName={({ hostname }) => hostname}
      total={undefined}
      onShow={pages.show}
      foot={pages.hasMore ? <Loading what="more hosts" /> : null}
    />
  );
}

function Record({ batch }: { readonly batch: Batch }): ReactNode {
  const siteName = useSiteName();
  const facts: Fact[] = [
    ["Batch", <code key="id">{batch.batch_id}</code>],
    ["Site", siteName(batch.site_id)],
    ["Operation", words(batch.mode ?? batch.kind)],
    ["Began", <RelativeTime key="began" at={batch.started_at} none="not yet" />],
    ["Ended", <RelativeTime key="ended" at={batch.ended_at} none="not yet" />],
    ["Stops after", batch.stop_after_failures === null ? "never" : counted(batch.stop_after_failures, "failure")],
    ["Request", batch.operation === null ? undefined : <Evidence key="request" value={batch.operation} />],
    ["Filter", batch.filter === null ? undefined : <Evidence key="filter" value={batch.filter} />],
  ];
  return (
    <Section title="Record">
      <Facts facts={facts} />
    </Section>
  );
}
