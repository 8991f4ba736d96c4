/** An error answer of the simulated region. Clients read the status, body and content type of an error answer, so all three are as in a real MAAS. */
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

/** An error answer with status 400, with error messages by form field. */
export function badFields(fields: Readonly<Record<string, readonly string[]>>): Refusal {
  return new Refusal(400, JSON.stringify(fields), "application/json; charset=utf-8");
}

/** An error answer with status 409 and a plain text, for a call that the status of the machine does not allow. */
export function stateConflict(message: string): Refusal {
  return new Refusal(409, message);
}

/** An error answer with status 403, for a call on a locked machine or by a user without the permission. */
export function forbidden(message = ""): Refusal {
  return new Refusal(403, message);
}

export function notFound(noun: string): Refusal {
  return new Refusal(404, `No ${noun} matches the given query.`, "text/plain");
}

export function required(field: string): Refusal {
  return badFields({ [field]: ["This field is required."] });
}

/** MAAS's error text for a value outside a closed set of values. */
export function notOneOf(value: string, field: string, choices: readonly string[]): string {
  return `'${value}' is not a valid ${field}.  It should be one of: ${choices.map((choice) => `'${choice}'`).join(", ")}.`;
}
