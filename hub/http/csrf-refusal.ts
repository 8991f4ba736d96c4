import type { Context } from "hono";
import { ApiError } from "../../shared/api/errors.ts";
import { type CsrfVerdict, csrfVerdict, pageVerdict, type RequestMarks } from "../sign-in/csrf.ts";

const marksOf = (c: Context, publicOrigin: string | null): Omit<RequestMarks, "cookie" | "authorization"> => ({
  method: c.req.method,
  secFetchSite: c.req.header("sec-fetch-site") ?? null,
  origin: c.req.header("origin") ?? null,
  contentType: c.req.header("content-type") ?? null,
  publicOrigin,
});

/**
 * Throws unless the headers of the request show that a page of the hub itself sent the request. The function `mustBeOfPage` checks requests that may
 * have no session yet, for example a sign-in.
 */
export function mustBeOfPage(c: Context, publicOrigin: string | null): void {
  refuse(pageVerdict(marksOf(c, publicOrigin)), publicOrigin);
}

/** Throws if a browser may have sent a request with a session's cookie for a page of another origin. */
export function mustNotBeForged(c: Context, publicOrigin: string | null, cookie: boolean): void {
  const authorization = c.req.header("authorization") !== undefined;
  refuse(csrfVerdict({ ...marksOf(c, publicOrigin), cookie, authorization }), publicOrigin);
}

function refuse(verdict: CsrfVerdict, publicOrigin: string | null): void {
  if (verdict === "allowed") return;
  if (verdict === "two_credentials")
    throw new ApiError(
      "two_credentials",
      "The request has a session's cookie and the header Authorization, so the hub cannot tell who acts. Send one of them.",
    );
  if (verdict === "not_json")
    throw new ApiError(
      "unsupported_media_type",
      "A request with a session's cookie that changes something must have the content type application/json.",
    );
  const place = publicOrigin === null ? "its own address" : publicOrigin;
  const next =
    verdict === "cross_site"
      ? "Open the page at that address. If that is not the hub's address, correct MUSTER_PUBLIC_URL."
      : "Use a browser that sends Sec-Fetch-Site, or set MUSTER_PUBLIC_URL.";
  throw new ApiError(
    "cross_site",
    `The hub takes changes with a session's cookie only from its own page at ${place}, and cannot see that this page sent the request. Nothing was done. ${next}`,
  );
}
