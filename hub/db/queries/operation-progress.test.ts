import { expect, it } from "vitest";
import type { StageEventStatus } from "../../../shared/workflow-status.ts";
import { tellingOf } from "./operation-progress.ts";

const NOW = new Date("2026-01-02T03:04:05.000Z");
const event = (status: StageEventStatus) => ({ stage: "s", attempt: 1, status, message: "m" });

it.each<[string, number | null, boolean, StageEventStatus[], ReturnType<typeof tellingOf>]>([
  ["a first wait", null, false, ["waiting"], "tell"],
  ["a wait soon after an event", 4.9, false, ["waiting"], "later"],
  ["a wait some time after it", 5, false, ["waiting"], "tell"],
  ["a stage that ended", 0.1, false, ["succeeded", "started"], "tell"],
  ["a stage that is tried again", 0.1, false, ["retrying"], "tell"],
  ["a look that changes nothing", null, false, [], "nothing"],
  ["a look after a change without an event", 5, true, [], "tell"],
  ["a look too soon after it", 4.9, true, [], "later"],
])("%s", (_, seconds, untold, statuses, telling) => {
  const toldAt = seconds === null ? null : new Date(NOW.getTime() - seconds * 1000);
  expect(tellingOf({ now: NOW, toldAt, untold }, statuses.map(event))).toBe(telling);
});
