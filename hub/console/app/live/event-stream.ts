import { EventText } from "./event-text.ts";
import { type Topic, topicsOf } from "./topics.ts";

/** What a tab learns of the one event stream of the browser. */
export type LiveNews =
  | { readonly kind: "open" }
  | { readonly kind: "changed"; readonly topics: readonly Topic[]; readonly cursor: string | null }
  /** Events are lost, so everything is stale. */
  | { readonly kind: "reset" }
  | { readonly kind: "away"; readonly since: number; readonly nextTry: number }
  /** The hub refuses the stream for good: the session has ended, or its role may read no events. */
  | { readonly kind: "refused"; readonly status: number };

/** Says whether the news mean that the session is over. A role without the right to follow events keeps its session. */
export const endsSession = (news: LiveNews): boolean => news.kind === "refused" && news.status === 401;

/** The hub sends a comment after 15 s without an event, so a longer silence means that the connection is dead. */
const SILENCE_MS = 40_000;
const PATH = "/api/v1/admin/events/stream";

/** Reads one stream until it ends. Returns the position after the last event, or the status with which the hub refused the stream. */
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
