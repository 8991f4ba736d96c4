import { API_ERRORS, type ApiErrorCode, PROBLEM_TYPE } from "../../shared/api/errors.ts";
import { TOKEN_RATES } from "../gateway/budgets.ts";
import type { Route } from "./route.ts";

type Schema = Record<string, unknown>;

const header = (description: string, schema: Schema): Schema => ({ description, schema });

/** The headers of the API's answers, which the API description names once and every answer refers to. */
export const HEADERS = {
  RequestId: header("The id of the request, for the hub's log and the audit.", { type: "string" }),
  ETag: header("The version of the resource, for the header If-Match of a change.", { type: "string" }),
  RetryAfter: header("Seconds until the next request is accepted.", { type: "integer", minimum: 1 }),
} as const;
const refer = (name: keyof typeof HEADERS): Schema => ({ $ref: `#/components/headers/${name}` });
export const EVERY_ANSWER = { "X-Request-Id": refer("RequestId") };
export const VERSIONED_ANSWER = { ...EVERY_ANSWER, ETag: refer("ETag") };

/** The statuses of errors that a route may answer, each with the requests that may get the status. */
const REFUSALS: Readonly<Record<number, (route: Route) => boolean>> = {
  400: () => true,
  401: ({ permission }) => permission !== "public",
  403: ({ permission }) => permission !== "public",
  404: ({ params, permission }) => params !== undefined || permission === "write",
  409: ({ permission }) => permission === "write",
  410: ({ stream, query }) => stream !== undefined || query !== undefined,
  412: ({ method }) => method === "PATCH",
  413: ({ body }) => body !== undefined,
  415: ({ body }) => body !== undefined,
  422: ({ permission }) => permission === "write",
  428: ({ method }) => method === "PATCH",
  429: ({ permission }) => permission !== "public",
  503: () => true,
};

/** Errors of the routes for hosts, which this description leaves out. */
const OF_HOSTS =
  /^(token_(unknown|used|expired|of_another_node)|csr_|certificate_|node_deleted|session_stale|protocol_)/;

const codesOf = (status: number): ApiErrorCode[] =>
  (Object.keys(API_ERRORS) as ApiErrorCode[]).filter(
    (code) => API_ERRORS[code].status === status && !OF_HOSTS.test(code),
  );

const BUDGET = `Each token may send ${TOKEN_RATES.request.perMinute} requests a minute, ${TOKEN_RATES.write.perMinute} of them changes. Nothing was done.`;

const problem = (description: string, headers: Schema = EVERY_ANSWER): Schema => ({
  description,
  headers,
  content: { [PROBLEM_TYPE]: { schema: { $ref: "#/components/schemas/Problem" } } },
});

const nameOf = (status: string | number): string => `Problem${status}`;

/** The error answers, which the API description names once. The description of each lists the codes that its body may have. */
export const PROBLEMS: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(
    Object.keys(REFUSALS).map((status) => {
      const told = codesOf(Number(status)).map((code) => `${API_ERRORS[code].title} (\`${code}\`).`);
      if (status !== "429") return [nameOf(status), problem(told.join(" "))];
      const headers = { ...EVERY_ANSWER, "Retry-After": refer("RetryAfter") };
      return [nameOf(status), problem([...told, BUDGET].join(" "), headers)];
    }),
  ),
  [nameOf("Other")]: problem("Any other error, as a problem (RFC 9457)"),
};

/** The error answers of one route, as references. */
export const problemsOf = (route: Route): Schema => ({
  ...Object.fromEntries(
    Object.entries(REFUSALS)
      .filter(([, gets]) => gets(route))
      .map(([status]) => [status, { $ref: `#/components/responses/${nameOf(status)}` }]),
  ),
  default: { $ref: `#/components/responses/${nameOf("Other")}` },
});
