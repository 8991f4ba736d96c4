import { describe, expect, it } from "vitest";
import { Secret } from "../../shared/secret.ts";
import { type BadAnswer, errorOf } from "./errors.ts";
import { MAAS_ERRORS, type MaasErrorCode } from "./port.ts";

const answer = (status: number, body = "", more: Partial<BadAnswer> = {}): BadAnswer => ({
  operation: "POST machines/{id}/?op=deploy",
  method: "POST",
  status,
  retryAfter: null,
  body,
  secrets: [],
  ...more,
});
const page = "<!DOCTYPE html><html><body>nope</body></html>";
const fields = (value: unknown): string => JSON.stringify(value);

const CASES: readonly (readonly [string, BadAnswer, MaasErrorCode])[] = [
  ["no header", answer(401, "Forbidden"), "unauthorized"],
  [
    "no header where anonymous readers have a handler",
    answer(400, "Unrecognised signature: method=GET op=None"),
    "unauthorized",
  ],
  ["an operation that this version lacks", answer(400, "Unrecognised signature: method=GET op=nosuch"), "bad_answer"],
  ["fields", answer(400, fields({ hostname: ["Node with this Hostname already exists."] })), "rejected_input"],
  ["a list of texts", answer(400, fields(["bad"])), "rejected_input"],
  ["a plain text", answer(400, "Invalid erase: maybe"), "rejected_input"],
  [
    "commission in a wrong status",
    answer(400, fields({ __all__: ["Commission is not available because of the current state of the node."] })),
    "state_conflict",
  ],
  [
    "no rack to check the power type with",
    answer(400, fields({ power_type: ["No rack controllers are connected, unable to validate."] })),
    "no_rack",
  ],
  ["a page with 400", answer(400, page), "bad_answer"],
  ["locked, not the owner or no administrator", answer(403), "forbidden"],
  ["no administrator, in words", answer(403, "You cannot change settings."), "forbidden"],
  ["a page with 403", answer(403, page), "bad_answer"],
  ["an address outside its range", answer(403, "10.0.0.1 is not within the range of the subnet"), "rejected_input"],
  ["no such machine", answer(404, "No Machine matches the given query."), "not_found"],
  ["an address in use", answer(404, "IP address is already in use."), "state_conflict"],
  ["no such endpoint", answer(404, "Unknown API endpoint: /MAAS/api/2.0/x"), "bad_answer"],
  ["a page with 404", answer(404, page), "bad_answer"],
  ["a wrong status", answer(409, "Can't deploy a machine that is in the 'New' state"), "state_conflict"],
  ["MAAS's own database conflict", answer(409, page, { retryAfter: "5" }), "conflict_transient"],
  ["too large a body", answer(413, page), "rejected_input"],
  ["too many requests", answer(429), "unavailable"],
  ["the old API", answer(410), "bad_answer"],
  ["a method nobody has", answer(405), "bad_answer"],
  ["a redirect", answer(301, page), "bad_answer"],
  [
    "a BMC that does not answer",
    answer(
      500,
      "Connection timed out while performing power action.  Check BMC configuration and connectivity and try again.",
    ),
    "power_failure",
  ],
  [
    "a BMC that does not know the user",
    answer(500, "Incorrect username.  Check BMC configuration and try again."),
    "power_login_refused",
  ],
  [
    "a BMC that refuses the password",
    answer(500, "Incorrect password.  Check BMC configuration and try again."),
    "power_login_refused",
  ],
  [
    "a BMC whose user may not power",
    answer(500, "Access denied while performing power action.  Check BMC configuration and try again."),
    "power_login_refused",
  ],
  [
    "a BMC that does not move",
    answer(500, "Failed to power on. BMC never transitioned from off to on."),
    "power_failure",
  ],
  ["no BMC record", answer(503, "Unable to power control node without BMC"), "power_failure"],
  ["a BMC that no rack reaches", answer(500, "Error determining BMC task queue for machine abc123"), "no_rack"],
  ["no rack", answer(503, "Unable to connect to any rack controller.", { retryAfter: "10" }), "no_rack"],
  ["addresses used up", answer(503, "No more IPs available in subnet: 10.0.0.0/31"), "unavailable"],
  ["a proxy without its region", answer(502, page), "unavailable"],
  ["a page with 503", answer(503, `<html>rack controller BMC</html>`), "unavailable"],
  ["a region that took too long", answer(504), "unavailable"],
  ["any other exception", answer(500, "KeyError"), "server_error"],
];

describe("the error for an answer of MAAS", () => {
  it.each(CASES)("%s", (_, given, code) => {
    expect(errorOf(given)).toMatchObject({ code, httpStatus: given.status, operation: given.operation });
  });

  it("is one of the closed set for every status and body", () => {
    const bodies = ["", page, "null", "[]", "{}", '{"a":1}', '{"a":{"b":["c"]}}', "{", "\u0000\ud800"];
    for (let status = 100; status < 700; status += 1)
      for (const body of bodies) {
        const error = errorOf(answer(status, body));
        expect(MAAS_ERRORS).toContain(error.code);
        expect(error.outcomeUnknown).toBe(status >= 500);
      }
  });

  it("has a known outcome for a read, and for everything that MAAS refused before it acted", () => {
    expect(errorOf(answer(500, "x", { method: "GET" })).outcomeUnknown).toBe(false);
    expect(errorOf(answer(409)).outcomeUnknown).toBe(false);
  });

  it("recognizes a service that is not a MAAS region by the version request, which every region answers", () => {
    const version = { operation: "GET version/", method: "GET" };
    const advice = /No MAAS region answers at the site's api_base_url: correct it$/;
    expect(errorOf(answer(404, "nothing here", version)).message).toMatch(advice);
    expect(errorOf(answer(404, page, version)).message).toMatch(advice);
    expect(errorOf(answer(429, "", version)).message).not.toMatch(advice);
    expect(errorOf(answer(404, "nothing here")).message).not.toMatch(advice);
    expect(errorOf(answer(500, "x")).outcomeUnknown).toBe(true);
  });

  it("contains the limited Retry-After", () => {
    const seconds = (header: string | null): number | null =>
      errorOf(answer(503, "", { retryAfter: header })).retryAfterSeconds;
    expect([
      seconds("10"),
      seconds(null),
      seconds("Wed, 21 Oct 2026 07:28:00 GMT"),
      seconds("-1"),
      seconds("99999999"),
    ]).toEqual([10, null, null, null, 3600]);
  });

  it("contains field errors, limited in number and length", () => {
    expect(errorOf(answer(400, fields({ hostname: ["taken", "odd"], pool: "none" }))).fieldErrors).toEqual({
      hostname: ["taken", "odd"],
      pool: ["none"],
    });
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`field${i}`, ["x".repeat(5_000)]]));
    expect(JSON.stringify(errorOf(answer(400, fields(many))).fieldErrors).length).toBeLessThan(10_000);
    expect(errorOf(answer(400, fields({ a: { b: 1 } }))).fieldErrors).toEqual({});
  });
});

describe("the texts of an error", () => {
  const told = (error: Error): string => `${error.message} ${error.stack} ${JSON.stringify(error)}`;

  it("contain nothing of a 401 body", () => {
    const body = "Authorization Error: 'Invalid signature. Expected signature base string: &TheRealSecret'";
    const error = errorOf(answer(401, body));
    expect(error).toMatchObject({ snippet: "", fieldErrors: {} });
    expect(told(error)).not.toMatch(/TheRealSecret|base string/);
  });

  it("never contain secrets that were sent, wherever the answer repeats them", () => {
    const secrets = [new Secret("tok3nSecret"), new Secret("bmc pass")];
    const bodies = [
      fields({ power_parameters: ["tok3nSecret and bmc pass"], "bmc pass": ["x"] }),
      "ipmipower -p bmc pass tok3nSecret failed",
    ];
    for (const status of [400, 403, 404, 409, 500, 503])
      for (const body of bodies) expect(told(errorOf(answer(status, body, { secrets })))).not.toMatch(/tok3nS|bmc p/);
  });

  it("hide text that looks like a credential", () => {
    const { snippet } = errorOf(
      answer(500, `power_pass=hunter2, "token_secret": "abc" password: xyz base string: &real ok`),
    );
    expect(snippet).toBe(
      `power_pass=[redacted], "token_secret": "[redacted]" password: [redacted] base string: [redacted] ok`,
    );
  });

  it("are short, on one line, and can be stored in any database", () => {
    expect(errorOf(answer(500, `a\n\n b\u0000c\u0007${"x".repeat(1_000_000)}`)).snippet).toMatch(/^a b c x{294}$/);
    expect(errorOf(answer(500, `${"x".repeat(299)}😀`)).snippet.isWellFormed()).toBe(true);
    expect(errorOf(answer(500, page)).snippet).toBe("an HTML page");
  });

  it("say what to do about a redirect, a refused token and a missing rack", () => {
    expect(errorOf(answer(301)).message).toContain("api_base_url");
    expect(errorOf(answer(401)).message).toContain("token");
    expect(errorOf(answer(503, "Unable to connect to any rack controller.")).message).toContain("Connect a rack");
  });
});
