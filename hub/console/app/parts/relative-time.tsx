import { type ReactNode, useSyncExternalStore } from "react";
import { serverNow } from "../api/server-clock.ts";
import { relativeWords } from "./relative-words.ts";

/** All relative times on a screen, such as `3 min ago`, change together, driven by one timer that stops while the screen shows none. */
const TICK_MS = 10_000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let tick = 0;

function listen(tell: () => void): () => void {
  listeners.add(tell);
  timer ??= setInterval(() => {
    tick += 1;
    for (const one of listeners) one();
  }, TICK_MS);
  return () => {
    listeners.delete(tell);
    if (listeners.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
}

/** Renders its component again every ten seconds, and returns the present time by the hub's clock. */
export function useNow(): number {
  useSyncExternalStore(listen, () => tick);
  return serverNow();
}

/** Formats a time in the format and time zone of the browser. */
export const absolute = (iso: string): string =>
  new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Shows a time relative to now, such as `3 min ago`, with the exact time as the tooltip. */
export function RelativeTime({
  at,
  none = "never",
}: {
  readonly at: string | null | undefined;
  readonly none?: string;
}): ReactNode {
  const now = useNow();
  if (at === null || at === undefined) return <span>{none}</span>;
  return (
    <time dateTime={at} title={absolute(at)}>
      {relativeWords(Date.parse(at), now)}
    </time>
  );
}
