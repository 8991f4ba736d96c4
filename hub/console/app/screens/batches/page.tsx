import { SegmentedControl, Select } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { useSiteName, useSites } from "../../api/sites.ts";
import { BatchProgress, BatchStatus, type BatchSummary } from "../../parts/batch-progress.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { FilterRow } from "../../parts/filters.tsx";
import { BatchLink } from "../../parts/links.tsx";
import { useListPages } from "../../parts/list-pages.ts";
import { PageHead } from "../../parts/page-head.tsx";
import shared from "../../parts/parts.module.css";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { words } from "../../parts/tones.ts";
import { VirtualTable } from "../../parts/virtual-table.tsx";
import { batchesRoute } from "./route.ts";

type Kind = BatchSummary["kind"];
const PAGE = 100;

const batchesOf = (kind: Kind, siteId: string | undefined) => ({
  about: ["batches", "operations"],
  key: ["batches", kind, siteId],
  ask: (cursor: string | undefined, signal: AbortSignal) => {
    const request = { params: { query: { limit: PAGE, cursor, site_id: siteId } }, signal };
    return kind === "onboarding"
      ? read(api.GET("/api/v1/admin/onboarding-batches", request))
      : read(api.GET("/api/v1/admin/decommission-batches", request));
  },
});

/** Lists the batches of onboardings or of decommissions, the newest first. */
export function Page(): ReactNode {
  const { kind = "onboarding", site_id: siteId } = batchesRoute.useSearch();
  const navigate = useNavigate({ from: "/batches" });
  const sites = useSites();
  return (
    <>
      <PageHead title="Batches" />
      <FilterRow>
        <SegmentedControl
          aria-label="Kind of the batches"
          data={[
            { value: "onboarding", label: "Onboardings" },
            { value: "decommission", label: "Decommissions" },
          ]}
          value={kind}
          onChange={(value) =>
            void navigate({
              search: (before) => ({ ...before, kind: value === "decommission" ? "decommission" : undefined }),
              replace: true,
            })
          }
        />
        <Select
          aria-label="Site"
          placeholder="Site"
          clearable
          data={[...sites.values()].map(({ id, name }) => ({ value: id, label: name }))}
          value={siteId ?? null}
          onChange={(id) =>
            void navigate({ search: (before) => ({ ...before, site_id: id ?? undefined }), replace: true })
          }
        />
      </FilterRow>
      <Listed key={`${kind} ${siteId}`} kind={kind} siteId={siteId} />
    </>
  );
}

const columnsOf = (siteName: (id: string | null) => string): readonly Column<BatchSummary>[] => [
  {
    id: "batch",
    head: "Batch",
    cell: ({ kind, batch_id: id }) => <BatchLink kind={kind} id={id} />,
  },
  { id: "requested", head: "Requested", cell: ({ requested_at: at }) => <RelativeTime at={at} /> },
  { id: "mode", head: "Operation", cell: ({ mode, kind }) => words(mode ?? kind) },
  { id: "status", head: "Status", cell: (batch) => <BatchStatus batch={batch} /> },
  { id: "progress", head: "Progress", wide: true, cell: (batch) => <BatchProgress batch={batch} /> },
  { id: "total", head: "Hosts", align: "end", cell: ({ total }) => total },
  { id: "failed", head: "Failed", align: "end", cell: ({ failed }) => failed },
  { id: "refused", head: "Refused", align: "end", wide: true, cell: ({ refused }) => refused },
  { id: "site", head: "Site", wide: true, cell: ({ site_id: id }) => siteName(id) },
  { id: "by", head: "By", wide: true, cell: ({ requested_by: by }) => by ?? "-" },
];

function Listed({ kind, siteId }: { readonly kind: Kind; readonly siteId: string | undefined }): ReactNode {
  const siteName = useSiteName();
  const pages = useListPages<BatchSummary>(batchesOf(kind, siteId));
  if (pages.isFirst)
    return pages.error === null ? <Loading what="the batches" /> : <Failure error={pages.error} retry={pages.retry} />;
  if (pages.rows.length === 0)
    return (
      <Empty title={`There are no batches of ${kind}s`} kind={siteId === undefined ? "none" : "filtered"}>
        {siteId === undefined
          ? "A batch begins one operation for each of many hosts."
          : "Choose another site, or none."}
      </Empty>
    );
  return (
    <section className={shared.section} aria-label="The batches">
      <VirtualTable
        label="Batches"
        columns={columnsOf(siteName)}
        rows={pages.rows}
        rowKey={({ batch_id: id }) => id}
        rowName={({ requested_at: at }) => `the batch of ${at}`}
        total={undefined}
        onShow={pages.show}
        foot={pages.hasMore ? <Loading what="older batches" /> : null}
      />
      {pages.error === null ? null : <Failure error={pages.error} retry={pages.retry} />}
    </section>
  );
}
