import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";
import { useSiteName } from "../../api/sites.ts";
import { useListPages } from "../../parts/list-pages.ts";
import { operationColumns } from "../../parts/operation-columns.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import shared from "../../parts/parts.module.css";
import { Empty, Failure, Loading } from "../../parts/states.tsx";
import { counted } from "../../parts/tones.ts";
import { VirtualTable } from "../../parts/virtual-table.tsx";
import { OperationFilters } from "./filters.tsx";
import { hasFilter, listOf, type OperationRow, type OperationsSearch, totalOf } from "./operation-list.ts";
import { operationsRoute } from "./route.ts";

/** Finds operations of all kinds. The URL holds the filter and the order of the list of operations. */
export function Page(): ReactNode {
  const search = operationsRoute.useSearch();
  const navigate = useNavigate({ from: "/operations" });
  const total = useQuery({ ...totalOf(search), placeholderData: (before) => before }).data?.total;
  const change = (changes: Partial<OperationsSearch>): void =>
    void navigate({ search: (before) => ({ ...before, ...changes }), replace: true });
  return (
    <>
      <PageHead
        title="Operations"
        beside={<span role="status">{total === undefined || total === null ? "" : counted(total, "operation")}</span>}
      />
      <OperationFilters
        search={search}
        onChange={change}
        onPreset={(preset) => void navigate({ search: preset, replace: true })}
      />
      <Listed
        key={JSON.stringify(listOf(search).key)}
        search={search}
        total={total ?? undefined}
        onSort={(sort) => change({ sort: sort as OperationsSearch["sort"] })}
      />
    </>
  );
}

function Listed({
  search,
  total,
  onSort,
}: {
  readonly search: OperationsSearch;
  readonly total: number | undefined;
  readonly onSort: (sort: string) => void;
}): ReactNode {
  const siteName = useSiteName();
  const columns = useMemo(() => operationColumns(siteName), [siteName]);
  const pages = useListPages<OperationRow>(listOf(search));
  if (pages.isFirst)
    return pages.error === null ? (
      <Loading what="the operations" />
    ) : (
      <Failure error={pages.error} retry={pages.retry} />
    );
  if (pages.rows.length === 0)
    return hasFilter(search) ? (
      <Empty title="The filter leaves out all operations" kind="filtered">
        Take a filter back, or choose All.
      </Empty>
    ) : (
      <Empty title="This hub has no operations yet" kind="none">
        An onboarding or a decommission appears here as soon as somebody requests it.
      </Empty>
    );
  return (
    <section className={shared.section} aria-label="The operations">
      <VirtualTable
        label="Operations"
        columns={columns}
        rows={pages.rows}
        rowKey={({ operation_id: id }) => id}
        rowName={({ hostname }) => hostname}
        total={total}
        order={{ sort: search.sort ?? "-requested_at", onSort }}
        onShow={pages.show}
        foot={pages.hasMore ? <Loading what="more operations" /> : null}
      />
      {pages.error === null ? null : <Failure error={pages.error} retry={pages.retry} />}
    </section>
  );
}
