import { expect, it } from "vitest";
import { POWER_ERRORS, POWER_VERBS, type PowerVerb } from "../../shared/power.ts";
import { AFTER_POWER_ERROR, DEADLINE_SECONDS, type HostSeen, nextStep, type PowerProgress } from "./next-step.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const ago = (seconds: number): Date => new Date(NOW.getTime() - seconds * 1000);
const action = (verb: PowerVerb, more: Partial<PowerProgress> = {}): PowerProgress => ({
  verb,
  immediate: false,
  requestedAt: ago(600),
  deadlineAt: ago(-600),
  bootId: "boot-1",
  shutdownAskedAt: null,
  shutdownAcceptedAt: null,
  offAskedAt: null,
  onAskedAt: null,
  offSeenAt: null,
  ...more,
});
const agent = (bootId: string, connected = 5) => ({ bootId, lastSeenAt: ago(1), connectedAt: ago(connected) });
const said = (one: PowerProgress, seen: Partial<HostSeen>): string => {
  const step = nextStep(one, { power: "on", agent: null, now: NOW, ...seen });
  if (step.kind === "ask") return `ask ${step.command}${step.offSeen ? " (was off)" : ""}`;
  if (step.kind === "wait") return `${step.reason}${step.offSeen ? " (was off)" : ""}`;
  return step.kind === "failed" ? step.code : step.kind;
};
const OFF = { offSeenAt: ago(90) };
const ON = { ...OFF, onAskedAt: ago(30) };

it.each([
  ["off: the system shuts down first", action("off"), {}, "ask shutdown"],
  ["off: it gets its time", action("off", { shutdownAcceptedAt: ago(299) }), {}, "The host's system to shut down"],
  ["off: then the power goes", action("off", { shutdownAcceptedAt: ago(300) }), {}, "ask off"],
  [
    "off: MAAS has not accepted",
    action("off", { shutdownAskedAt: ago(119) }),
    {},
    "MAAS to accept the shutdown of the host's system",
  ],
  ["off: never accepted, so no cut", action("off", { shutdownAskedAt: ago(400) }), {}, "ask shutdown"],
  ["off: immediately", action("off", { immediate: true }), {}, "ask off"],
  ["off: asked already", action("off", { immediate: true, offAskedAt: ago(119) }), {}, "MAAS to power the machine off"],
  ["off: asked again", action("off", { immediate: true, offAskedAt: ago(120) }), {}, "ask off"],
  ["off: by the BMC's answer", action("off"), { power: "off" }, "done"],
  ["off: not by the agent's silence", action("off"), { agent: null }, "ask shutdown"],
  ["reboot: a shutdown", action("reboot"), { agent: agent("boot-1") }, "ask shutdown"],
  ["reboot: immediately", action("reboot", { immediate: true }), {}, "ask off"],
  ["reboot: on again", action("reboot"), { power: "off" }, "ask on (was off)"],
  ["cycle: off at once", action("cycle"), {}, "ask off"],
  ["cycle: rests", action("cycle"), { power: "off" }, "The machine to stay off for 60 s (was off)"],
  [
    "cycle: rests still",
    action("cycle", { offSeenAt: ago(59) }),
    { power: "off" },
    "The machine to stay off for 60 s (was off)",
  ],
  ["cycle: on again", action("cycle", { offSeenAt: ago(60) }), { power: "off" }, "ask on (was off)"],
  ["cycle: asked already", action("cycle", ON), { power: "off" }, "MAAS to power the machine on (was off)"],
  ["cycle: asked again", action("cycle", { ...OFF, onAskedAt: ago(120) }), { power: "off" }, "ask on (was off)"],
  ["cycle: boots", action("cycle", ON), {}, "The agent of the host to connect"],
  [
    "cycle: the old boot proves nothing",
    action("cycle", ON),
    { agent: agent("boot-1") },
    "The agent of the host to connect",
  ],
  ["cycle: another boot does", action("cycle", ON), { agent: agent("boot-2") }, "done"],
  ["cycle: no boot was known", action("cycle", { ...ON, bootId: null }), { agent: agent("boot-2") }, "done"],
  [
    "cycle: an old session",
    action("cycle", { ...ON, bootId: null }),
    { agent: agent("b", 40) },
    "The agent of the host to connect",
  ],
  ["reboot: another boot alone proves no command", action("reboot"), { agent: agent("boot-2") }, "ask shutdown"],
  ["reboot: came back", action("reboot", { shutdownAskedAt: ago(9) }), { agent: agent("boot-2") }, "done"],
  [
    "on: may still go off",
    action("on", { shutdownAcceptedAt: ago(100) }),
    { agent: agent("boot-1") },
    "The agent of the host to connect",
  ],
  ["on: the shutdown is over", action("on", { shutdownAcceptedAt: ago(302) }), { agent: agent("boot-1") }, "done"],
  ["on: another boot", action("on", { shutdownAcceptedAt: ago(100) }), { agent: agent("boot-2") }, "done"],
  ["on: off", action("on"), { power: "off" }, "ask on (was off)"],
  ["on: on, without its agent", action("on"), {}, "The agent of the host to connect"],
  ["on: on already", action("on"), { agent: agent("boot-1") }, "done"],
  ["unknown power", action("cycle"), { power: "error" }, "The BMC to say whether the machine is on"],
])("%s", (_, one, seen, expected) => expect(said(one, seen)).toBe(expected));

it.each([
  [action("off"), "on", "power_action_failed"],
  [action("off"), "unknown", "power_state_unknown"],
  [action("off"), "off", "done"],
  [action("on"), "on", "agent_unreachable"],
  [action("on"), "off", "power_action_failed"],
  [action("cycle"), "on", "power_action_failed"],
  [action("cycle", OFF), "off", "power_action_failed"],
  [action("cycle", ON), "on", "agent_unreachable"],
])("at its deadline %o with power %s is %s", (one, power, expected) =>
  expect(said({ ...one, deadlineAt: NOW }, { power })).toBe(expected),
);

it("has a deadline for each verb, and a next action for each error", () => {
  for (const verb of POWER_VERBS) expect(DEADLINE_SECONDS[verb]).toBeGreaterThan(600);
  for (const code of POWER_ERRORS) expect(AFTER_POWER_ERROR[code]).toMatch(/\.$/);
});
