/** One message of a server-sent event stream. A message without data only moves the client's position in the event stream. */
export interface StreamMessage {
  readonly id: string | null;
  readonly data: string | null;
}

/** Reads server-sent events from chunks of text, which may end in the middle of an event. */
export class EventText {
  #rest = "";

  /** Returns the messages that the piece completes. */
  take(piece: string): StreamMessage[] {
    const blocks = (this.#rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(messageOf).filter(({ id, data }) => id !== null || data !== null);
  }
}

function messageOf(block: string): StreamMessage {
  const fields = block.split("\n").map((line) => {
    const colon = line.indexOf(":");
    const [name, value] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    return { name, value };
  });
  const data = fields.filter(({ name }) => name === "data").map(({ value }) => value);
  return {
    id: fields.findLast(({ name }) => name === "id")?.value ?? null,
    data: data.length === 0 ? null : data.join("\n"),
  };
}
