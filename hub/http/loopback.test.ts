import { expect, it } from "vitest";
import { isLoopback } from "./loopback.ts";

it.each(["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])("%s is this machine alone", (host) =>
  expect(isLoopback(host)).toBe(true),
);

it.each(["0.0.0.0", "::", "10.0.0.1", "hub.example", "localhost.example", "128.0.0.1", ""])(
  "%s is reached by others, or may be",
  (host) => expect(isLoopback(host)).toBe(false),
);
