import { expect, it } from "vitest";
import { POWER_STATES, POWER_VERBS } from "../../shared/power.ts";
import { type PowerRecord, powerIntentOf } from "./power-intent.ts";

const AT = new Date("2026-03-01T12:00:00Z");
const after = (seconds: number): Date => new Date(AT.getTime() + seconds * 1000);
const NODE = { generation: 3 };
const record = (more: Partial<PowerRecord>): PowerRecord => ({
  verb: "off",
  state: "done",
  generation: 3,
  requestedBy: "ann",
  reason: "no need",
  requestedAt: after(-60),
  finishedAt: AT,
  ...more,
});
const kindOf = (one: PowerRecord | undefined, seen: Date | null = null) => powerIntentOf(one, NODE, seen)?.kind ?? null;

it("excuses the silence of a host for each verb and state, and for no other", () => {
  const excused = POWER_VERBS.flatMap((verb) =>
    POWER_STATES.flatMap((state) => {
      const kind = kindOf(record({ verb, state, finishedAt: state === "running" ? null : AT }));
      return kind === null ? [] : [`${verb} ${state} ${kind}`];
    }),
  );
  expect(excused).toEqual([
    "on running restarting",
    "off running stopping",
    "off done off",
    "cycle running restarting",
    "reboot running restarting",
  ]);
});

it("ends with another generation, and with a report after the machine was off", () => {
  expect(kindOf(undefined)).toBeNull();
  expect(kindOf(record({ generation: 2 }))).toBeNull();
  expect(kindOf(record({}), after(60))).toBe("off");
  expect(kindOf(record({}), after(61))).toBeNull();
  expect(kindOf(record({ state: "running", finishedAt: null }), after(61))).toBe("stopping");
});
