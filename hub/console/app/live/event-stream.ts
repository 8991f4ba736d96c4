import { EventText } from "./event-text.ts";
import { type Topic, topicsOf } from "./topics.ts";

/** The messages by which each browser tab of the console learns what happens on the one event stream from the hub. */
export type LiveNews =
  | { readonly kind: "open" }
  | { readonly kind: "changed"; readonly topics: readonly Topic[]; readonly cursor: string | null }
  /** Events are lost, so everything is stale. */
  | { readonly kind: "reset" }
  | { readonly kind: "away"; readonly since: number; readonly nextTry: number }
  /** The hub refuses the event stream for good: the login session has ended, or the person's role may read no events. */
  | { readonly kind: "refused"; readonly status: number };

/** Says whether a message about the event stream means that the login session is over. A person whose role may not read events stays signed in. */
export const endsSession = (news: LiveNews): boolean => news.kind === "refused" && news.status === 401;

/** The hub sends a comment on the event stream after 15 s without an event, so a longer silence means that the connection is dead. */
const SILENCE_MS = 40_000;
const PATH = "/api/v1/admin/events/stream";

/** Reads one stream until it ends. Returns the stream position after the last event, or the HTTP status with which the hub refused the event stream. */
export async function readStream(
  cursor: string | null,
  tell: (news: LiveNews) => void,
  signal: AbortSignal,
): Promise<{ readonly cursor: string | null; readonly status: number }> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const stillHere = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  let at = cursor;
  try {
    const answer = await fetch(PATH, {
      headers: { accept: "text/event-stream", ...(cursor === null ? {} : { "last-event-id": cursor }) },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!answer.ok || answer.body === null) return { cursor, status: answer.status };
    tell({ kind: "open" });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const text = new EventText();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      stillHere();
      const messages = text.take(piece.value);
      at = messages.findLast(({ id }) => id !== null)?.id ?? at;
      const topics = new Set(messages.flatMap(({ data }) => (data === null ? [] : topicsOf(eventOf(data)))));
      if (messages.length > 0) tell({ kind: "changed", topics: [...topics], cursor: at });
    }
  } catch {
    return { cursor: at, status: 0 };
  } finally {
    clearTimeout(timer);
  }
  return { cursor: at, status: 200 };
}

function eventOf(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
