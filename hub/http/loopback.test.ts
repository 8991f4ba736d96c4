import { expect, it } from "vitest";
import { isLoopback, isSafeForSecrets } from "./loopback.ts";

it.each(["127.0.0.1", "127.9.9.9", "::1", "localhost", "::ffff:127.0.0.1"])(
  "%s is reachable only from this machine",
  (host) => expect(isLoopback(host)).toBe(true),
);

it.each(["0.0.0.0", "::", "10.0.0.1", "hub.example", "localhost.example", "128.0.0.1", ""])(
  "%s is or may be reachable from other machines",
  (host) => expect(isLoopback(host)).toBe(false),
);

it.each(["https://hub.example", "http://127.0.0.1:4318/v1", "http://[::1]:4318", "http://localhost"])(
  "a secret may be sent to %s",
  (url) => expect(isSafeForSecrets(url)).toBe(true),
);

it.each(["http://hub.example", "http://10.0.0.1", "http://localhost.example", "no URL"])(
  "no secret may be sent to %s",
  (url) => expect(isSafeForSecrets(url)).toBe(false),
);
