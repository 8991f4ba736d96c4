/** One wrong field of a request, with a JSON pointer. */
export interface FieldError {
  readonly pointer: string;
  readonly message: string;
}

interface About {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId?: string | undefined;
  readonly fields?: readonly FieldError[];
  readonly context?: Readonly<Record<string, string>>;
}

/** The only kind of error of a request: the hub refused it, or did not answer. The field `detail` says what happened and what to do next. */
export class HubError extends Error {
  /** The HTTP status, or 0 if no answer came. */
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  readonly fields: readonly FieldError[];
  readonly context: Readonly<Record<string, string>>;

  constructor({ status, code, title, detail, requestId, fields = [], context = {} }: About) {
    super(detail);
    this.status = status;
    this.code = code;
    this.title = title;
    this.detail = detail;
    this.requestId = requestId;
    this.fields = fields;
    this.context = context;
  }

  get isAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

export const noAnswer = (): HubError =>
  new HubError({
    status: 0,
    code: "no_answer",
    title: "The hub does not answer",
    detail:
      "The hub does not answer. The console tries again by itself; look at the hub's service if the problem stays.",
  });

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Returns the error of an answer. A proxy between browser and hub may answer with something other than a problem document. */
export function errorOf(status: number, body: unknown): HubError {
  const problem = isObject(body) ? body : {};
  const code = textOf(problem["code"]);
  if (code === undefined)
    return new HubError({
      status,
      code: "not_the_hub",
      title: "Something other than the hub answered",
      detail: `Something other than the hub answered at the hub's address, with the status ${status}. Check the proxy between this browser and the hub.`,
    });
  return new HubError({
    status,
    code,
    title: textOf(problem["title"]) ?? code,
    detail: textOf(problem["detail"]) ?? code,
    requestId: textOf(problem["request_id"]),
    fields: Array.isArray(problem["errors"]) ? problem["errors"].filter(isField) : [],
    context: contextOf(problem["context"]),
  });
}

const isField = (value: unknown): value is FieldError =>
  isObject(value) && typeof value["pointer"] === "string" && typeof value["message"] === "string";

const contextOf = (value: unknown): Record<string, string> =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value).flatMap(([key, one]) => (typeof one === "string" ? [[key, one]] : [])))
    : {};
