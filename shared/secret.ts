const REDACTED = "[redacted]";

/**
 * A secret text that prints as `[redacted]` in logs, templates and JSON. Only `reveal()` returns a secret's text, so a search for `reveal(` finds
 * every place that uses the text.
 */
export class Secret {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
  }
  reveal(): string {
    return this.#text;
  }
  toString(): string {
    return REDACTED;
  }
  toJSON(): string {
    return REDACTED;
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return REDACTED;
  }
}
