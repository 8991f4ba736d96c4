import type { QueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, use, useEffect, useRef, useState } from "react";
import { noteSessionEnded, queryClient } from "../api/query-client.ts";
import { endsSession, type LiveNews } from "./event-stream.ts";
import { followEvents } from "./follow-events.ts";
import { Gathering } from "./gathering.ts";
import { EVERYTHING, isAbout, type Topic, topicsIn } from "./topics.ts";

export type Standing =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "away"; readonly since: number; readonly nextTry: number }
  | { readonly kind: "refused"; readonly status: number };

interface Live {
  readonly standing: Standing;
  /** Tries at once to reach the hub. */
  tryNow(): void;
}

const LiveContext = createContext<Live>({ standing: { kind: "connecting" }, tryNow: () => undefined });
export const useLive = (): Live => use(LiveContext);

/** Marks queries as stale. The stale queries of a visible screen are sent again at once; the others are sent when a screen shows them. */
function makeStale(client: QueryClient, changed: ReadonlySet<Topic>): void {
  const refetchType = document.visibilityState === "visible" ? "active" : "none";
  void client.invalidateQueries({ predicate: ({ meta }) => isAbout(topicsIn(meta), changed), refetchType });
}

const refetchStale = (): void => {
  if (document.visibilityState === "visible") void queryClient.refetchQueries({ type: "active", stale: true });
};

/** Reloads what the screens show whenever the hub sends an event about it. Without an event the console asks nothing. */
export function LiveProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const [standing, setStanding] = useState<Standing>({ kind: "connecting" });
  const followed = useRef<ReturnType<typeof followEvents> | null>(null);
  useEffect(() => {
    const gathering = new Gathering((changed) => makeStale(queryClient, changed));
    let opened = false;
    const hear = (news: LiveNews): void => {
      if (news.kind === "changed") gathering.add(news.topics);
      else if (news.kind === "reset") gathering.add([EVERYTHING]);
      else if (news.kind === "open") open();
      else setStanding(news);
      if (endsSession(news)) noteSessionEnded();
    };
    const open = (): void => {
      // Data that was loaded before the event stream opened may lack changes whose events nobody received, so everything is loaded again. After the
      // hub was unreachable, the queries that failed are sent again.
      if (!opened) makeStale(queryClient, new Set([EVERYTHING]));
      else void queryClient.refetchQueries({ predicate: ({ state }) => state.status === "error", type: "active" });
      opened = true;
      setStanding({ kind: "live" });
    };
    followed.current = followEvents(hear);
    document.addEventListener("visibilitychange", refetchStale);
    return () => {
      followed.current?.stop();
      gathering.stop();
      document.removeEventListener("visibilitychange", refetchStale);
    };
  }, []);
  return <LiveContext value={{ standing, tryNow: () => followed.current?.tryNow() }}>{children}</LiveContext>;
}
