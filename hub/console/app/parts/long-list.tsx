import type { ReactNode } from "react";
import type { Topic } from "../live/topics.ts";
import type { Column, Order } from "./data-table.tsx";
import { type ListPage, useListPages } from "./list-pages.ts";
import classes from "./parts.module.css";
import { Failure, Loading } from "./states.tsx";
import { VirtualTable } from "./virtual-table.tsx";

interface Props<Row> {
  /** The plural name of what the list contains, in lower case, for example `allocations`. */
  readonly what: string;
  readonly about: readonly Topic[];
  readonly listKey: readonly unknown[];
  readonly ask: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<Row>>;
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  readonly order?: Order;
  /** What the screen shows if the list is empty. */
  readonly empty: ReactNode;
}

/** A list of any length that loads its next page while a person scrolls. When the filter of a list changes, the list scrolls back to its first row. */
export const LongList = <Row,>(props: Props<Row>): ReactNode => (
  <Listed key={JSON.stringify(props.listKey)} {...props} />
);

function Listed<Row>({ what, about, listKey, ask, columns, rowKey, order, empty }: Props<Row>): ReactNode {
  const pages = useListPages<Row>({ about, key: listKey, ask });
  const { rows, error, retry } = pages;
  if (pages.isFirst) return error === null ? <Loading what={what} /> : <Failure error={error} retry={retry} />;
  if (rows.length === 0) return empty;
  return (
    <section className={classes.section} aria-label={`The ${what}`}>
      <VirtualTable
        label={`The ${what} as a table`}
        columns={columns}
        rows={rows}
        rowKey={rowKey}
        rowName={rowKey}
        total={pages.hasMore ? undefined : rows.length}
        onShow={pages.show}
        foot={pages.hasMore ? <Loading what={`more ${what}`} /> : null}
        {...(order === undefined ? {} : { order })}
      />
      {error === null ? null : <Failure error={error} retry={retry} />}
    </section>
  );
}
