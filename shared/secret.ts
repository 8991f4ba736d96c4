const REDACTED = "[redacted]";

/**
 * A secret text that prints as `[redacted]` wherever it is logged, templated or put into JSON. Only `reveal()` gives the text, so a
 * search for `reveal(` finds every place where a secret leaves its wrapping.
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
