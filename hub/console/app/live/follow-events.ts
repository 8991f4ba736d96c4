import { waitAfter } from "./backoff.ts";
import { type LiveNews, readStream } from "./event-stream.ts";

const LEADER = "muster-live-leader";
const CHANNEL = "muster-live";
/** The console waits this long before it reopens an event stream that ended normally. */
const SHORTEST_MS = 1_000;

/** The messages that the console's tabs in one browser send each other. A newly opened tab asks the other tabs for the state of the event stream. */
type TabMessage = LiveNews | { readonly kind: "ask" };

/**
 * Follows the hub's events. One tab of a browser, the leader, holds the event stream and passes its messages on to the other tabs, because a browser
 * opens only six HTTP/1.1 connections to a server. When the leading tab closes, the browser gives the leader's Web Lock to another tab.
 */
export function followEvents(hear: (news: LiveNews) => void): { stop(): void; tryNow(): void } {
  const ending = new AbortController();
  const channel = new BroadcastChannel(CHANNEL);
  let cursor: string | null = null;
  let standing: LiveNews | null = null;
  let leads = false;
  let wake = (): void => undefined;
  const take = (news: LiveNews): void => {
    if (news.kind === "changed") cursor = news.cursor;
    else if (news.kind === "reset") cursor = null;
    else standing = news;
    hear(news);
  };
  const tell = (news: LiveNews): void => {
    take(news);
    channel.postMessage(news satisfies TabMessage);
  };
  channel.addEventListener("message", ({ data }: MessageEvent<TabMessage>) => {
    if (data.kind !== "ask") take(data);
    else if (leads && standing !== null) channel.postMessage(standing satisfies TabMessage);
  });
  const lead = async (): Promise<void> => {
    leads = true;
    const pause = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, ms);
      });
    const missed = (): boolean => cursor === null && standing !== null;
    await keepStream({ cursor: () => cursor, missed, tell, pause, signal: ending.signal });
  };
  channel.postMessage({ kind: "ask" } satisfies TabMessage);
  // The browser offers no Web Locks to a hub's page that uses neither TLS nor a loopback address, so each tab of such a page opens its own event
  // stream.
  const led = navigator.locks === undefined ? lead() : navigator.locks.request(LEADER, { signal: ending.signal }, lead);
  // When this tab stops following events, its wait for the leader's Web Lock ends with an error, which is ignored.
  led.catch(() => undefined);
  return {
    stop: () => {
      ending.abort();
      wake();
      channel.close();
    },
    tryNow: () => wake(),
  };
}

interface Keeper {
  readonly cursor: () => string | null;
  /** True if an earlier event stream was open and no stream position is known, so events between it and a new stream may be lost. */
  readonly missed: () => boolean;
  readonly tell: (news: LiveNews) => void;
  readonly pause: (ms: number) => Promise<void>;
  readonly signal: AbortSignal;
}

async function keepStream({ cursor, missed, tell, pause, signal }: Keeper): Promise<void> {
  let failures = 0;
  let awaySince: number | null = null;
  const hear = (news: LiveNews): void => {
    if (news.kind === "open") [failures, awaySince] = [0, null];
    const lost = news.kind === "open" && missed();
    tell(news);
    if (lost) tell({ kind: "reset" });
  };
  while (!signal.aborted) {
    const { status } = await readStream(cursor(), hear, signal);
    if (signal.aborted) return;
    if (status === 401 || status === 403) return tell({ kind: "refused", status });
    if (status === 410) tell({ kind: "reset" });
    if (status === 200 || status === 410) {
      await pause(SHORTEST_MS);
      continue;
    }
    failures += 1;
    awaySince ??= Date.now();
    const wait = waitAfter(failures, Math.random());
    tell({ kind: "away", since: awaySince, nextTry: Date.now() + wait });
    await pause(wait);
  }
}
