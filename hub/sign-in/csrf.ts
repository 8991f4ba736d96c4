/** The parts of a request from which the hub decides whether the hub's own page sent the request. */
export interface RequestMarks {
  readonly method: string;
  /** True if the request has the cookie of a session. */
  readonly cookie: boolean;
  /** True if the request has the header Authorization. */
  readonly authorization: boolean;
  readonly secFetchSite: string | null;
  readonly origin: string | null;
  readonly contentType: string | null;
  /** The origin of the setting MUSTER_PUBLIC_URL, or null if the setting is absent. Behind a proxy the header Host may name another server. */
  readonly publicOrigin: string | null;
}

export type CsrfVerdict = "allowed" | "two_credentials" | "cross_site" | "origin_unknown" | "not_json";

const SAFE: readonly string[] = ["GET", "HEAD", "OPTIONS"];
const JSON_TYPE = /^application\/json *(;|$)/i;

/**
 * Decides whether a request with a session's cookie may act. A browser adds the cookie to the requests of every page, so the hub must not act for a
 * page of another origin. If a browser sends both headers Sec-Fetch-Site and Origin, both must show that the hub's own page sent the request. A
 * request with a bearer token needs no check of its origin, because a browser never adds such a token by itself.
 */
export function csrfVerdict(marks: RequestMarks): CsrfVerdict {
  if (marks.cookie && marks.authorization) return "two_credentials";
  return marks.cookie ? pageVerdict(marks) : "allowed";
}

/** Decides whether the hub's own page sent a request, for a request that may have no cookie yet, for example a sign-in by a token. */
export function pageVerdict({
  method,
  secFetchSite,
  origin,
  contentType,
  publicOrigin,
}: Omit<RequestMarks, "cookie" | "authorization">): Exclude<CsrfVerdict, "two_credentials"> {
  if (SAFE.includes(method)) return "allowed";
  if (secFetchSite !== null && secFetchSite !== "same-origin") return "cross_site";
  if (secFetchSite === null && (origin === null || publicOrigin === null)) return "origin_unknown";
  if (origin !== null && publicOrigin !== null && origin !== publicOrigin) return "cross_site";
  // The text "null" is the origin of a page without an origin, for example of a sandboxed frame.
  if (origin === "null") return "cross_site";
  return JSON_TYPE.test(contentType ?? "") ? "allowed" : "not_json";
}
