import { describe, expect, it } from "vitest";
import { errorOf, noAnswer } from "./hub-error.ts";

describe("the error of an answer", () => {
  it("has the hub's words, the wrong fields and the request's id", () => {
    const problem = {
      code: "count_mismatch",
      title: "The filter matches another number of nodes",
      detail: "The filter matches 3 nodes.",
      request_id: "r1",
      errors: [{ pointer: "/a", message: "is wrong" }, "odd"],
      context: { approval_id: "a1", odd: 1 },
    };
    expect(errorOf(409, problem)).toMatchObject({
      status: 409,
      code: "count_mismatch",
      message: "The filter matches 3 nodes.",
      requestId: "r1",
      fields: [{ pointer: "/a", message: "is wrong" }],
      context: { approval_id: "a1" },
      isAway: false,
    });
  });

  it.each([null, "<html>", {}, { code: 7 }])("says of %j that something else answered", (body) => {
    expect(errorOf(502, body)).toMatchObject({ code: "not_the_hub", isAway: true });
  });

  it("without an answer is one of an absent hub", () => {
    expect(noAnswer().isAway).toBe(true);
  });
});
