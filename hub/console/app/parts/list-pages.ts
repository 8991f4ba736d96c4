import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { question } from "../api/query-client.ts";
import type { Topic } from "../live/topics.ts";

/** One page of a list that the API returned. */
export interface ListPage<Row> {
  readonly items: readonly Row[];
  readonly next_cursor: string | null;
}

interface Asked<Row> {
  readonly about: readonly Topic[];
  /**
   * The key by which the console caches the list with its filter and order. When the key of the list changes, the list begins at its first page
   * again.
   */
  readonly key: readonly unknown[];
  readonly ask: (cursor: string | undefined, signal: AbortSignal) => Promise<ListPage<Row>>;
}

export interface ListPages<Row> {
  readonly rows: readonly Row[];
  /** The time at which the hub sent each row, because rows of a page that is scrolled out of view may be older than the rows in view. */
  readonly answeredAt: readonly number[];
  readonly error: Error | null;
  /** True until the first page is there. */
  readonly isFirst: boolean;
  readonly hasMore: boolean;
  /** The table reports which rows are in view, so that the pages with these rows stay up to date and the next page is loaded in time. */
  readonly show: (first: number, last: number) => void;
  readonly retry: () => void;
}

/** The next page is loaded when the view comes within this many rows of the end of the loaded rows. */
const AHEAD = 40;

/**
 * Loads a long list page by page while a person scrolls. After an event, only the pages in view are loaded again, so a screen with thousands of
 * loaded rows costs the hub as little as one with a hundred.
 */
export function useListPages<Row>({ about, key, ask }: Asked<Row>): ListPages<Row> {
  const client = useQueryClient();
  const [sight, setSight] = useState({ first: 0, last: 0, wanted: 1 });
  const shown = useRef<ListPage<Row>[]>([]);
  const keyOf = (cursor: string | undefined): readonly unknown[] => [...key, cursor ?? "first"];
  const cursors: (string | undefined)[] = [undefined];
  while (cursors.length < sight.wanted) {
    const page = client.getQueryData<ListPage<Row>>(keyOf(cursors.at(-1)));
    if (page === undefined || page.next_cursor === null) break;
    cursors.push(page.next_cursor);
  }
  const pages = useQueries({
    queries: cursors.map((cursor, n) => ({
      ...question(about, keyOf(cursor), (signal) => ask(cursor, signal)),
      enabled: (n >= sight.first && n <= sight.last) || n === cursors.length - 1,
      // When rows are added or removed, the cursor at which a later page begins changes. A page's old rows stay on the screen until its new rows are
      // loaded.
      placeholderData: () => shown.current[n],
    })),
  });
  const loaded = pages.flatMap(({ data }) => (data === undefined ? [] : [data]));
  shown.current = loaded;
  const hasMore = loaded.length > 0 && loaded.at(-1)?.next_cursor !== null;
  const show = useCallback((first: number, last: number): void => {
    const ends = endsOf(shown.current);
    const pageOf = (row: number): number =>
      Math.max(
        0,
        ends.findIndex((end) => row < end),
      );
    const count = ends.at(-1) ?? 0;
    const next = {
      first: pageOf(first),
      last: last >= count ? Math.max(0, ends.length - 1) : pageOf(last),
      wanted: Math.max(1, ends.length + (last >= count - AHEAD ? 1 : 0)),
    };
    setSight((now) =>
      now.first === next.first && now.last === next.last && now.wanted >= next.wanted
        ? now
        : { ...next, wanted: Math.max(now.wanted, next.wanted) },
    );
  }, []);
  const failed = pages.find(({ isError }) => isError);
  return {
    rows: loaded.flatMap(({ items }) => items),
    answeredAt: pages.flatMap(({ data, dataUpdatedAt: at }) => data?.items.map(() => at) ?? []),
    error: failed?.error ?? null,
    isFirst: loaded.length === 0,
    hasMore,
    show,
    retry: () => void Promise.all(pages.filter(({ isError }) => isError).map((page) => page.refetch())),
  };
}

/** For each page, the number of rows from the begin of the list to the end of the page. */
function endsOf(pages: readonly ListPage<unknown>[]): number[] {
  let end = 0;
  return pages.map(({ items }) => {
    end += items.length;
    return end;
  });
}
