import { Checkbox } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";
import { Cells, type Column, HeadRow, type Order } from "./data-table.tsx";
import classes from "./parts.module.css";

const ROW_HEIGHT = 34;
const OVERSCAN = 12;

/** Which rows of the table a person has selected, and the function that changes the selection. */
export interface Selection {
  readonly has: (key: string) => boolean;
  readonly set: (keys: readonly string[], chosen: boolean) => void;
}

interface Props<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  /** The name by which a screen reader calls a row, for example the hostname. */
  readonly rowName: (row: Row) => string;
  /** The number of all rows of the list, if known; the table renders only the rows in view. */
  readonly total: number | undefined;
  readonly order?: Order;
  readonly selection?: Selection;
  /** Called with the range of the rows in view. */
  readonly onShow?: (first: number, last: number) => void;
  readonly foot?: ReactNode;
}

/** A table for thousands of rows. Only the rows in view are in the DOM, and all rows have the same height. */
export function VirtualTable<Row>(props: Props<Row>): ReactNode {
  const { label, columns, rows, rowKey, total, order, selection, onShow, foot } = props;
  const scroller = useRef<HTMLElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    useFlushSync: false,
    getItemKey: (index) => {
      const row = rows[index];
      return row === undefined ? index : rowKey(row);
    },
  });
  const items = virtualizer.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  const count = rows.length;
  useEffect(() => onShow?.(first, count === 0 ? 0 : last), [first, last, count, onShow]);
  const above = items[0]?.start ?? 0;
  const below = virtualizer.getTotalSize() - (items.at(-1)?.end ?? 0);
  const width = columns.length + (selection === undefined ? 0 : 1);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by the keyboard
    <section className={classes.tall} ref={scroller} aria-label={label} tabIndex={0}>
      <table className={`${classes.table} ${classes.virtual}`} aria-rowcount={(total ?? count) + 1}>
        <thead>
          <HeadRow
            columns={columns}
            order={order}
            before={selection === undefined ? null : <ChooseAll rows={rows} rowKey={rowKey} selection={selection} />}
          />
        </thead>
        <tbody>
          <Space height={above} width={width} />
          {items.map(({ index, key }) => {
            const row = rows[index];
            return row === undefined ? null : <VirtualRow key={key} {...props} row={row} index={index} />;
          })}
          <Space height={below} width={width} />
        </tbody>
      </table>
      {foot}
    </section>
  );
}

/** An empty row that takes the height of the rows above or below the rows in view. */
const Space = ({ height, width }: { readonly height: number; readonly width: number }): ReactNode =>
  height <= 0 ? null : (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row of a table cannot have the focus
    <tr aria-hidden="true" className={classes.space}>
      <td colSpan={width} style={{ height }} />
    </tr>
  );

function VirtualRow<Row>({
  row,
  index,
  columns,
  rowKey,
  rowName,
  selection,
}: Props<Row> & { row: Row; index: number }) {
  const key = rowKey(row);
  const chosen = selection?.has(key);
  return (
    <tr aria-rowindex={index + 2} data-chosen={chosen}>
      {selection === undefined ? null : (
        <td className={classes.choice}>
          <Checkbox
            size="xs"
            aria-label={`Select ${rowName(row)}`}
            checked={chosen ?? false}
            onChange={(event) => selection.set([key], event.currentTarget.checked)}
          />
        </td>
      )}
      <Cells columns={columns} row={row} />
    </tr>
  );
}

function ChooseAll<Row>({
  rows,
  rowKey,
  selection,
}: {
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  readonly selection: Selection;
}): ReactNode {
  const keys = rows.map(rowKey);
  const chosen = keys.filter(selection.has).length;
  return (
    <th scope="col" className={classes.choice}>
      <Checkbox
        size="xs"
        aria-label="Select all loaded rows"
        checked={chosen > 0 && chosen === keys.length}
        indeterminate={chosen > 0 && chosen < keys.length}
        onChange={(event) => selection.set(keys, event.currentTarget.checked)}
      />
    </th>
  );
}
