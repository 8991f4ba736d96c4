/** How the region says no: the status, the body and its type are part of the contract that clients match on. */
export class Refusal extends Error {
  readonly status: number;
  readonly body: string;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    body: string,
    contentType = "text/plain; charset=utf-8",
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(`${status} ${body}`);
    this.status = status;
    this.body = body;
    this.contentType = contentType;
    this.headers = headers;
  }
}

/** 400 with messages by form field. */
export function badFields(fields: Readonly<Record<string, readonly string[]>>): Refusal {
  return new Refusal(400, JSON.stringify(fields), "application/json; charset=utf-8");
}

/** 409 in plain words: the machine's state does not allow it. */
export function stateConflict(message: string): Refusal {
  return new Refusal(409, message);
}

/** 403 without a word, as for a locked machine or a caller without the right. */
export function forbidden(message = ""): Refusal {
  return new Refusal(403, message);
}

export function notFound(noun: string): Refusal {
  return new Refusal(404, `No ${noun} matches the given query.`, "text/plain");
}

export function required(field: string): Refusal {
  return badFields({ [field]: ["This field is required."] });
}

/** The words for a value outside a closed set. */
export function notOneOf(value: string, field: string, choices: readonly string[]): string {
  return `'${value}' is not a valid ${field}.  It should be one of: ${choices.map((choice) => `'${choice}'`).join(", ")}.`;
}
