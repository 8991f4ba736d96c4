import type { ReactNode } from "react";
import { Icon } from "../look/icons.tsx";
import classes from "./parts.module.css";

export interface Column<Row> {
  readonly id: string;
  readonly head: string;
  readonly cell: (row: Row) => ReactNode;
  /** The name by which the API sorts the list by this column; undefined if the API cannot sort by it. */
  readonly sort?: string;
  readonly align?: "end";
  /** True for a column that is hidden in a narrow window. */
  readonly wide?: boolean;
}

/** How a list is sorted, as the API writes it: a minus before the name reverses the order. */
export interface Order {
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}

interface TableProps<Row> {
  /** The name of the table for a screen reader, which says what the table lists. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  readonly order?: Order;
}

/** A table for at most some hundred rows. For a list of a whole fleet, screens use a `VirtualTable` instead. */
export const DataTable = <Row,>({ label, columns, rows, rowKey, order }: TableProps<Row>): ReactNode => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard
  <section className={classes.scroller} aria-label={label} tabIndex={0}>
    <table className={classes.table}>
      <thead>
        <HeadRow columns={columns} order={order} />
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={rowKey(row)}>
            <Cells columns={columns} row={row} />
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

export const HeadRow = <Row,>({
  columns,
  order,
  before,
}: {
  readonly columns: readonly Column<Row>[];
  readonly order?: Order | undefined;
  readonly before?: ReactNode;
}): ReactNode => (
  <tr>
    {before}
    {columns.map(({ id, head, sort, align, wide }) => (
      <th key={id} scope="col" data-align={align} data-wide={wide} aria-sort={ariaSort(sort, order)}>
        {sort === undefined || order === undefined ? head : <SortButton head={head} name={sort} order={order} />}
      </th>
    ))}
  </tr>
);

export const Cells = <Row,>({
  columns,
  row,
}: {
  readonly columns: readonly Column<Row>[];
  readonly row: Row;
}): ReactNode =>
  columns.map(({ id, cell, align, wide }) => (
    <td key={id} data-align={align} data-wide={wide}>
      {cell(row)}
    </td>
  ));

function SortButton({ head, name, order }: { head: string; name: string; order: Order }): ReactNode {
  const rises = order.sort === name;
  const falls = order.sort === `-${name}`;
  return (
    <button type="button" className={classes.sort} onClick={() => order.onSort(rises ? `-${name}` : name)}>
      {head}
      {rises || falls ? <Icon name={rises ? "up" : "down"} size={11} /> : null}
    </button>
  );
}

function ariaSort(name: string | undefined, order: Order | undefined): "ascending" | "descending" | undefined {
  if (name === undefined || order === undefined) return undefined;
  if (order.sort === name) return "ascending";
  return order.sort === `-${name}` ? "descending" : undefined;
}
