import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ForeignReadinessSignal } from "../../shared/readiness.ts";
import { eventCondition, phoneHomeCondition, reportedSignal } from "./cloud-init-reports.ts";

const AT = new Date("2026-01-01T00:00:00Z");
const TOKEN = { sha256: "0".repeat(64), generation: 3 };
/** The last event of a host's boot, in the form in which cloud-init 22.4 and 25.1 post the event. */
const FINISH = {
  name: "modules-final",
  description: "running modules for final",
  event_type: "finish",
  result: "SUCCESS",
  origin: "cloudinit",
  timestamp: 1795210466.73,
};

describe("an event of cloud-init's reporting webhook", () => {
  it.each([
    ["SUCCESS", "True", "Succeeded"],
    ["WARN", "True", "SucceededWithWarnings"],
    ["FAIL", "False", "Failed"],
  ])("that finishes modules-final with %s makes cloud_init.done %s", (result, status, reason) => {
    expect(eventCondition({ ...FINISH, result })).toEqual({
      type: "cloud_init.done",
      status,
      reason,
      message: `cloud-init: ${result}, running modules for final`,
    });
  });

  it.each([
    ["its start", { ...FINISH, event_type: "start", result: undefined }],
    ["another stage's finish", { ...FINISH, name: "modules-config" }],
    ["a module's finish", { ...FINISH, name: "modules-final/config-scripts-user" }],
    ["a result of a later version", { ...FINISH, result: "SKIPPED" }],
    ["no object", ["modules-final"]],
    ["nothing", null],
  ])("sets no condition of the node if it is %s", (_, event) => {
    expect(eventCondition(event)).toBeNull();
  });
});

describe("a report's signal", () => {
  it("is accepted by the hub, whatever text a host sends", () => {
    const text = fc.string({ unit: "binary", maxLength: 2_000 });
    fc.assert(
      fc.property(text, text, (one, other) => {
        const said = [
          phoneHomeCondition(new URLSearchParams({ hostname: one, instance_id: other })),
          phoneHomeCondition(new URLSearchParams(one)),
          eventCondition({ ...FINISH, description: one }),
        ];
        for (const condition of said) {
          if (condition === null) throw new Error("the last event said nothing");
          const signal = ForeignReadinessSignal.parse(reportedSignal(TOKEN, condition, one, AT));
          const message = signal.conditions[0]?.message ?? "";
          expect(message.length).toBeLessThanOrEqual(300);
          expect(message.isWellFormed()).toBe(true);
          expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        }
      }),
    );
  });

  it("has an id made of its content and its token: a repeated report has the same id, any other has another", () => {
    const home = phoneHomeCondition(new URLSearchParams("hostname=a"));
    const done = eventCondition(FINISH) ?? home;
    const ids = [
      reportedSignal(TOKEN, home, "hostname=a", AT),
      reportedSignal(TOKEN, home, "hostname=b", AT),
      reportedSignal(TOKEN, done, "hostname=a", AT),
      reportedSignal({ ...TOKEN, sha256: "1".repeat(64) }, home, "hostname=a", AT),
    ].map((signal) => signal.signal_id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(reportedSignal(TOKEN, home, "hostname=a", new Date())).toMatchObject({ signal_id: ids[0], generation: 3 });
  });
});
