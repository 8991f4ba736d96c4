import { expect, it } from "vitest";
import { targetOfPath } from "./refused-requests.ts";

it.each([
  ["/api/v1/admin/nodes/{id}/drain", { id: "a-1" }, "nodes/a-1"],
  ["/api/v1/admin/maas-sites/{id}/profiles/{profile_id}", { id: "s", profile_id: "p" }, "maas-sites/s"],
  ["/api/v1/admin/skus/{id}", { id: "h100" }, "skus/h100"],
  ["/api/v1/admin/skus/{id}", { id: "a b\n" }, "skus"],
  ["/api/v1/admin/onboardings", {}, "onboardings"],
  ["/api/v1/readiness/senders/{id}/rotate", { id: "a-1" }, "signal-senders/a-1"],
  ["/api/v1/readiness/senders", {}, "signal-senders"],
  ["/api/v1/readiness/signals", {}, "readiness-signals"],
  ["/api/v1/admin/onboardings/batch", {}, "onboardings"],
])("finds the object of a request to %s", (path, params, target) => {
  expect(targetOfPath(path, params)).toBe(target);
});
