import { setTimeout as pause } from "node:timers/promises";
import { invocationOf } from "./arguments.ts";
import { Refused } from "./errors.ts";
import type { Hub, Item } from "./hub.ts";
import { call } from "./request.ts";

/** Called for each event of the hub. */
type Heard = (event: Item) => void;

const RECONNECT_MS = 2_000;
/** Reads one message of an event stream: its id, and its data if it has data. */
const MESSAGE = /^(id|data): ?(.*)$/;

/**
 * Follows the hub's events until `signal` ends. The returned promise is fulfilled as soon as the hub sends events, so that a state that the caller
 * reads afterwards is no older than the first event. If the connection ends, `followEvents` continues after the last event, or from now on if the hub
 * no longer has the events in between, and calls `lost` so that the caller reads the state again.
 */
export async function followEvents(
  hub: Hub,
  types: readonly string[],
  { heard, lost, signal }: { readonly heard: Heard; readonly lost: () => void; readonly signal: AbortSignal },
): Promise<void> {
  const operation = hub.operation("streamDomainEvents");
  const open = async (cursor: string | null): Promise<Response> => {
    const query = new URLSearchParams({ types: types.join(","), ...(cursor === null ? {} : { cursor }) });
    const invocation = invocationOf(operation, { words: {}, query, body: null });
    return call(hub.target, { method: operation.method, invocation, signal });
  };
  let cursor: string | null = null;
  const first = await open(null);
  const goOn = async (): Promise<void> => {
    for (let response: Response | null = first; !signal.aborted; response = null) {
      try {
        cursor = await readStream(response ?? (await open(cursor)), cursor, heard);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused && error.httpStatus === 410) cursor = null;
      }
      if (signal.aborted) return;
      await pause(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
      lost();
    }
  };
  void goOn();
}

/** Reads a stream to its end, and returns the cursor of its last message. */
async function readStream(response: Response, before: string | null, heard: Heard): Promise<string | null> {
  let cursor = before;
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const messages = text.split("\n\n");
    text = messages.pop() ?? "";
    for (const message of messages) {
      const fields = new Map(
        message.split("\n").flatMap((line) => {
          const [, name = "", value = ""] = MESSAGE.exec(line) ?? [];
          return name === "" ? [] : [[name, value] as const];
        }),
      );
      cursor = fields.get("id") ?? cursor;
      const data = fields.get("data");
      if (data !== undefined) heard(JSON.parse(data) as Item);
    }
  }
  return cursor;
}
