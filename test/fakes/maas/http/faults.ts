import { unpackUserData } from "../host/user-data.ts";
import type { Fields, Reply } from "./call.ts";

export const FAULT_KINDS = [
  "status",
  "timeout_before",
  "timeout_after_accept",
  "conflict_html_retry_after",
  "bmc_500",
  "no_rack_503",
  "truncated_body",
  "echo_form",
] as const;
/**
 * Only tests in the simulator's own process can use the fault kind `held`. With a fault of the kind `held`, the region carries out and answers a
 * request only when the promise `held` resolves.
 */
export type FaultKind = (typeof FAULT_KINDS)[number] | "held";

export interface FaultMatch {
  method?: string | undefined;
  op?: string | undefined;
  /** A text that must occur, below the API root, in the path of a request that the fault affects. */
  path?: string | undefined;
  system_id?: string | undefined;
}

export interface Fault {
  id: number;
  match: FaultMatch;
  kind: FaultKind;
  code?: number | undefined;
  body?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  held?: Promise<void> | undefined;
  times: number;
  /** How many matching requests the region answers correctly before the fault begins. */
  after?: number | undefined;
}

export interface RequestShape {
  method: string;
  op: string | null;
  path: string;
}

/** The faults that tests have added and that still apply, in the order in which they were added. At most one fault affects a request. */
export class FaultBook {
  #faults: Fault[] = [];
  #lastId = 0;

  add(fault: Omit<Fault, "id">): Fault {
    this.#lastId += 1;
    const added = { ...fault, id: this.#lastId };
    this.#faults.push(added);
    return added;
  }

  list(): readonly Fault[] {
    return this.#faults;
  }

  clear(): void {
    this.#faults = [];
  }

  /** Counts the request for the first fault that matches the request, and returns the fault if it has begun, otherwise null. */
  take(request: RequestShape): Fault | null {
    const fault = this.#faults.find(({ match }) => fits(match, request));
    if (fault === undefined) return null;
    if (fault.after !== undefined && fault.after > 0) {
      fault.after -= 1;
      return null;
    }
    fault.times -= 1;
    if (fault.times <= 0) this.#faults = this.#faults.filter((one) => one !== fault);
    return fault;
  }
}

function fits(match: FaultMatch, request: RequestShape): boolean {
  return (
    (match.method === undefined || match.method.toUpperCase() === request.method) &&
    (match.op === undefined || match.op === (request.op ?? "")) &&
    (match.path === undefined || request.path.includes(match.path)) &&
    (match.system_id === undefined || request.path.split("/").includes(match.system_id))
  );
}

/**
 * Refuses each field of the request's form, except the hostname, with Django's error text, which repeats the value that was sent. `echoOf` does not
 * refuse the hostname, because a client of MAAS takes a refused hostname for a conflict with another machine. If the form has user data, the refusal
 * also repeats all lines of the user data's scripts that contain `=`.
 */
export function echoOf(form: Fields): Reply {
  const refused = form.entries().filter(([name]) => name !== "hostname");
  const errors = refused.map(([name, values]) => {
    const value = values.join(",");
    const scripts = name === "user_data" ? unpackUserData(Buffer.from(value, "base64")) : [];
    const lines = scripts
      .flatMap(({ content }) => content.toString("utf8").split("\n"))
      .filter((line) => line.includes("="));
    const said = [value.slice(0, 2_000), ...lines].map(
      (one) => `Select a valid choice. ${one} is not one of the available choices.`,
    );
    return [name, said] as const;
  });
  return { status: 400, body: JSON.stringify(Object.fromEntries(errors)), contentType: "application/json" };
}

export function faultReply(fault: Fault): Reply | null {
  switch (fault.kind) {
    case "status":
      return {
        status: fault.code ?? 500,
        body: fault.body ?? "",
        contentType: fault.headers?.["Content-Type"] ?? "text/plain; charset=utf-8",
        headers: fault.headers ?? {},
      };
    case "conflict_html_retry_after":
      return {
        status: 409,
        body: "<html><body><h1>Conflict error. Try your request again, as it will most likely succeed.</h1></body></html>",
        contentType: "text/html; charset=utf-8",
        headers: { "Retry-After": "5" },
      };
    case "bmc_500":
      return {
        status: 500,
        body: "Connection timed out while performing power action.  Check BMC configuration and connectivity and try again.",
        contentType: "text/plain; charset=utf-8",
      };
    case "no_rack_503":
      return {
        status: 503,
        body: "Unable to connect to any rack controller.",
        contentType: "text/plain; charset=utf-8",
        headers: { "Retry-After": "10" },
      };
    default:
      return null;
  }
}
