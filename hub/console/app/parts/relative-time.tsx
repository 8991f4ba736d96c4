import { type ReactNode, useSyncExternalStore } from "react";
import { serverNow } from "../api/server-clock.ts";
import { relativeWords } from "./relative-words.ts";

/** All relative times of a screen change together, by one timer that stops while the screen shows none. */
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

/** Draws its component again every ten seconds, and returns the present time by the hub's clock. */
export function useNow(): number {
  useSyncExternalStore(listen, () => tick);
  return serverNow();
}

/** A time in the format and time zone of the browser's user. */
export const absolute = (iso: string): string =>
  new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A time as a person thinks of it, with the exact time as its tooltip. */
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
