/**
 * The error for a command line that the program `muster` cannot understand. A `UsageError` says how the operator must write the command, and `muster`
 * ends with exit status 2.
 */
export class UsageError extends Error {
  override readonly name: string = "UsageError";
}

/** The error for a name that no object has. */
export class UnknownName extends UsageError {}

export class Refused extends Error {
  override readonly name = "Refused";
  /** The HTTP status of the hub's answer; null if the command itself refuses. */
  readonly httpStatus: number | null;

  constructor(message: string, httpStatus: number | null = null) {
    super(message);
    this.httpStatus = httpStatus;
  }
}

/** The error for a request of which the hub carried out a part. */
export class PartlyDone extends Refused {}

export class Away extends Error {
  override readonly name = "Away";
}
