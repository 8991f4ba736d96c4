/** An error answer of the region. Clients compare status, body and content type of an error, so all three match a real region. */
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

/** A refusal with status 400 and error messages by form field. */
export function badFields(fields: Readonly<Record<string, readonly string[]>>): Refusal {
  return new Refusal(400, JSON.stringify(fields), "application/json; charset=utf-8");
}

/** A refusal with status 409 and a plain text, for a call that the machine's state does not allow. */
export function stateConflict(message: string): Refusal {
  return new Refusal(409, message);
}

/** A refusal with status 403, for a call on a locked machine or from a user without the permission. */
export function forbidden(message = ""): Refusal {
  return new Refusal(403, message);
}

export function notFound(noun: string): Refusal {
  return new Refusal(404, `No ${noun} matches the given query.`, "text/plain");
}

export function required(field: string): Refusal {
  return badFields({ [field]: ["This field is required."] });
}

/** The error text for a value outside a closed set of values. */
export function notOneOf(value: string, field: string, choices: readonly string[]): string {
  return `'${value}' is not a valid ${field}.  It should be one of: ${choices.map((choice) => `'${choice}'`).join(", ")}.`;
}
