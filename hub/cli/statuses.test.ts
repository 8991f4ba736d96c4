import { describe, expect, it } from "vitest";
import { API_ERRORS } from "../../shared/api/errors.ts";
import { Away, Refused, UnknownName, UsageError } from "./errors.ts";

import { endOf, endOfOperation, STATUS } from "./statuses.ts";

const of = (error: unknown): number => endOf(error)[0];

describe("the exit status", () => {
  it("says of each error of the API what a script can do", () => {
    const byCode = Object.entries(API_ERRORS).map(([code, { status }]) => [code, of(new Refused("", status))] as const);
    const codes = (status: number): string[] => byCode.flatMap(([code, one]) => (one === status ? [code] : []));
    expect(codes(STATUS.notAllowed)).toEqual(
      expect.arrayContaining(["unauthenticated", "forbidden", "no_role", "own_approval"]),
    );
    expect(codes(STATUS.notFound)).toEqual(["node_deleted", "not_found", "position_gone"]);
    expect(codes(STATUS.unreachable)).toEqual(["unavailable"]);
    expect(codes(STATUS.refused)).toEqual(
      expect.arrayContaining([
        "conflict",
        "verb_not_allowed",
        "precondition_failed",
        "approval_required",
        "site_disabled",
        "sku_unknown",
      ]),
    );
    expect(codes(STATUS.usage)).toEqual(["validation_failed", "malformed_json", "csr_invalid", "two_credentials"]);
    expect(codes(STATUS.failed)).toEqual(expect.arrayContaining(["internal_error", "rate_limited"]));
    expect(codes(STATUS.done)).toEqual([]);
  });

  it("tells errors of the program apart", () => {
    const login = Object.assign(new Error("ended"), { name: "LoginError" });
    const late = Object.assign(new Error("late"), { name: "TimeoutError" });
    expect(
      [
        new UsageError("x"),
        new UnknownName("x"),
        new Away("x"),
        login,
        late,
        new TypeError("cut"),
        new Error("x"),
        "x",
      ].map(of),
    ).toEqual([2, 5, 3, 4, 3, 3, 1, 1]);
  });

  it("of a command of one operation is 1 for each refusal and 2 for each unknown name", () => {
    const login = Object.assign(new Error("ended"), { name: "LoginError" });
    const errors = [
      ...[400, 401, 403, 404, 409, 503].map((status) => new Refused("", status)),
      login,
      new UnknownName("x"),
      new Away("x"),
    ];
    expect(errors.map((error) => endOfOperation(error)[0])).toEqual([1, 1, 1, 1, 1, 1, 1, 2, 3]);
  });
});
