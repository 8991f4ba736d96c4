import { Away, Refused, UnknownName, UsageError } from "./errors.ts";

/** The exit statuses of the program `muster`, which docs/cli.md explains. */
export const STATUS = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
  notFound: 5,
  refused: 6,
  deadline: 7,
  partly: 8,
  interrupted: 130,
} as const;
export type Status = (typeof STATUS)[keyof typeof STATUS];

/** The exit status for each HTTP status with which a hub, or a proxy before it, refuses a request; every other status means `failed`. */
const OF_HTTP: Readonly<Record<number, Status>> = {
  400: STATUS.usage,
  401: STATUS.notAllowed,
  403: STATUS.notAllowed,
  404: STATUS.notFound,
  409: STATUS.refused,
  410: STATUS.notFound,
  412: STATUS.refused,
  422: STATUS.refused,
  428: STATUS.refused,
  502: STATUS.unreachable,
  503: STATUS.unreachable,
  504: STATUS.unreachable,
};

/** The exit status and the message for an error that ended a command. */
export function endOf(error: unknown): readonly [Status, string] {
  if (error instanceof UnknownName) return [STATUS.notFound, error.message];
  if (error instanceof UsageError) return [STATUS.usage, error.message];
  if (error instanceof Refused) return [OF_HTTP[error.httpStatus ?? 0] ?? STATUS.failed, error.message];
  if (!(error instanceof Error)) return [STATUS.failed, String(error)];
  // The name of the error is compared, because an import of the class `LoginError` would load the code of the log-in, which most commands do not
  // need.
  if (error.name === "LoginError") return [STATUS.notAllowed, error.message];
  if (error instanceof Away) return [STATUS.unreachable, error.message];
  const cut = error.name === "TimeoutError" || error instanceof TypeError;
  return cut
    ? [
        STATUS.unreachable,
        `The connection to the hub ended before its answer was complete: ${error.message}. Check whether the command took effect, then try again.`,
      ]
    : [STATUS.failed, `The answer could not be read: ${error.message}`];
}

/**
 * The exit status for an error of a command that calls one operation of the API. Commands that call one operation of the API have had only the exit
 * statuses 1, 2 and 3 for errors since the first version, so their errors get no other status.
 */
export function endOfOperation(error: unknown): readonly [Status, string] {
  const [status, message] = endOf(error);
  if (error instanceof UsageError) return [STATUS.usage, message];
  return [error instanceof Refused || status === STATUS.notAllowed ? STATUS.failed : status, message];
}
