import { expect, it } from "vitest";
import { endsSession } from "./event-stream.ts";

it("ends the session if the hub refuses the stream because of the session, and only then", () => {
  expect(endsSession({ kind: "refused", status: 401 })).toBe(true);
  expect(endsSession({ kind: "refused", status: 403 })).toBe(false);
  expect(endsSession({ kind: "away", since: 0, nextTry: 1 })).toBe(false);
});
