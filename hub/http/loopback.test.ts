import { expect, it } from "vitest";
import { isLoopback } from "./loopback.ts";

it.each(["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])(
  "%s is reachable only from this machine",
  (host) => expect(isLoopback(host)).toBe(true),
);

it.each(["0.0.0.0", "::", "10.0.0.1", "hub.example", "localhost.example", "128.0.0.1", ""])(
  "%s is or may be reachable from other machines",
  (host) => expect(isLoopback(host)).toBe(false),
);
