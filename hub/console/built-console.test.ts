import { expect, it } from "vitest";
import { encodingFor } from "./built-console.ts";

it.each([
  ["gzip, deflate, br, zstd", "br"],
  ["gzip, deflate", "gzip"],
  ["br;q=0, gzip;q=0.5", "gzip"],
  ["br;q=0.0,gzip;q=0", null],
  ["BR", "br"],
  ["identity", null],
  [undefined, null],
])("a client that accepts %j gets %j", (accepted, encoding) => {
  expect(encodingFor(accepted)).toBe(encoding);
});
