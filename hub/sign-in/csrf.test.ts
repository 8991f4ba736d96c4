import { describe, expect, it } from "vitest";
import { csrfVerdict, type RequestMarks } from "./csrf.ts";

const OWN = "https://muster.example";
const DOMAIN = {
  method: ["GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE", "get", "QUERY"],
  cookie: [false, true],
  authorization: [false, true],
  secFetchSite: [null, "same-origin", "same-site", "cross-site", "none", "", "SAME-ORIGIN"],
  origin: [null, OWN, "https://evil.example", "https://muster.example:8443", "http://muster.example", "null", ""],
  contentType: [
    null,
    "application/json",
    "Application/JSON; charset=utf-8",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/jsonp",
  ],
  publicOrigin: [OWN, null],
} as const;

function* requests(): Generator<RequestMarks> {
  for (const method of DOMAIN.method)
    for (const cookie of DOMAIN.cookie)
      for (const authorization of DOMAIN.authorization)
        for (const secFetchSite of DOMAIN.secFetchSite)
          for (const origin of DOMAIN.origin)
            for (const contentType of DOMAIN.contentType)
              for (const publicOrigin of DOMAIN.publicOrigin)
                yield { method, cookie, authorization, secFetchSite, origin, contentType, publicOrigin };
}
const all = [...requests()];

/** The marks that a request of the hub's own page has, as the list of all acceptable pairs of Sec-Fetch-Site and Origin. */
const OWN_PAGE: Record<"with a public URL" | "without", readonly (readonly [string | null, string | null])[]> = {
  "with a public URL": [
    ["same-origin", OWN],
    ["same-origin", null],
    [null, OWN],
  ],
  without: [
    ["same-origin", null],
    ...DOMAIN.origin
      .filter((origin) => origin !== null && origin !== "null")
      .map((origin) => ["same-origin", origin] as const),
  ],
};
const JSON_TYPES: readonly (string | null)[] = ["application/json", "Application/JSON; charset=utf-8"];

describe("the verdict on a request with a session's cookie, over its whole domain", () => {
  it("allows an unsafe request with a cookie exactly if the hub's own page sent it as JSON", () => {
    const unsafe = all.filter(
      ({ method, cookie, authorization }) => cookie && !authorization && !["GET", "HEAD", "OPTIONS"].includes(method),
    );
    expect(unsafe).toHaveLength(6 * 7 * 7 * 7 * 2);
    for (const one of unsafe) {
      const pairs = OWN_PAGE[one.publicOrigin === null ? "without" : "with a public URL"];
      const isOwn = pairs.some(([site, origin]) => site === one.secFetchSite && origin === one.origin);
      const expected = isOwn && JSON_TYPES.includes(one.contentType);
      expect(csrfVerdict(one) === "allowed", JSON.stringify(one)).toBe(expected);
      if (isOwn && !expected) expect(csrfVerdict(one)).toBe("not_json");
    }
  });

  it("refuses every request with a cookie and a bearer token, even a read", () => {
    const both = all.filter(({ cookie, authorization }) => cookie && authorization);
    expect(new Set(both.map(csrfVerdict))).toEqual(new Set(["two_credentials"]));
  });

  it("allows every request without a cookie, because no browser adds a bearer token by itself", () => {
    expect(new Set(all.filter(({ cookie }) => !cookie).map(csrfVerdict))).toEqual(new Set(["allowed"]));
  });

  it("allows reads with a cookie from anywhere, because a read changes nothing", () => {
    const reads = all.filter(
      ({ method, cookie, authorization }) => cookie && !authorization && ["GET", "HEAD", "OPTIONS"].includes(method),
    );
    expect(new Set(reads.map(csrfVerdict))).toEqual(new Set(["allowed"]));
  });

  it("says why it cannot know the origin, if the browser sends no mark", () => {
    const post = {
      method: "POST",
      cookie: true,
      authorization: false,
      secFetchSite: null,
      contentType: "application/json",
    };
    expect(csrfVerdict({ ...post, origin: OWN, publicOrigin: null })).toBe("origin_unknown");
    expect(csrfVerdict({ ...post, origin: null, publicOrigin: OWN })).toBe("origin_unknown");
  });
});
