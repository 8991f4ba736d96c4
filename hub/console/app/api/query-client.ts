import { MutationCache, QueryCache, QueryClient, queryOptions } from "@tanstack/react-query";
import { areTold, type Topic } from "../live/topics.ts";
import { HubError } from "./hub-error.ts";

/** What the console does when the hub says that the session is over. The session's own code sets it. */
let sessionEnded: () => void = () => undefined;
/** Tells the console that its session has ended, for code that learns of the hub's refusal outside of a query, such as the event stream. */
export const noteSessionEnded = (): void => sessionEnded();
export const onSessionEnded = (tell: () => void): void => {
  sessionEnded = tell;
};

const noteRefusal = (error: unknown): void => {
  if (error instanceof HubError && error.status === 401) sessionEnded();
};

/**
 * The console reads no data again by itself: data counts as fresh until an event makes it stale. A query that failed because the hub was away is sent
 * again when the event stream is back, so a query itself makes no second attempt.
 */
export const queryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteRefusal }),
  mutationCache: new MutationCache({ onError: noteRefusal }),
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 300_000,
      retry: false,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      networkMode: "always",
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

/**
 * Describes a question to the hub. The topics of `about` say which of the hub's events make the answer stale: events about a kind of object such as
 * `nodes`, or about one object such as `nodes/<id>`. If the hub sends no events about a topic, each screen asks the hub anew when it opens.
 */
export const question = <Data>(
  about: readonly Topic[],
  key: readonly unknown[],
  ask: (signal: AbortSignal) => Promise<Data>,
) =>
  queryOptions({
    queryKey: key,
    queryFn: ({ signal }) => ask(signal),
    meta: { about },
    refetchOnMount: areTold(about) ? true : "always",
  });

/**
 * Marks a question to the hub whose answer may change without an event of the hub. The console repeats a question marked by `unannounced` when a
 * screen opens, and when a person comes back to the browser tab.
 */
export const unannounced = <Question extends object>(asked: Question): Question & { readonly staleTime: 0 } => ({
  ...asked,
  staleTime: 0,
});
