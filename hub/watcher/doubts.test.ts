import { describe, expect, it } from "vitest";
import type { MaasEvent, MaasMachine } from "../maas/port.ts";
import { machine } from "../workflows/machine/machines.fixture.ts";
import { DOUBT_MS, Doubts } from "./doubts.ts";

const event = (type: string, id = 1): MaasEvent => ({
  id,
  node: "abc123",
  hostname: "c07u43",
  level: "DEBUG",
  type,
  description: "",
  created: "",
});
const is = (powerState: string, systemId = "abc123"): MaasMachine => machine({ systemId, powerState });
const DOWN = "User powering down node";
const UP = "User powering up node";

const look = (doubts: Doubts, seen: MaasMachine, now: number, ...news: MaasEvent[]): void =>
  doubts.looked(news, { asked: [seen.systemId], machines: [seen] }, now);

/** Returns the times, in seconds, at which the machine is read during two hours of polls, if every reading shows the state `seen`. */
function reads(doubts: Doubts, seen: MaasMachine, from = 0): number[] {
  const at: number[] = [];
  for (let now = from + 5_000; now <= from + 7_200_000; now += 5_000) {
    if (!doubts.due(now).includes("abc123")) continue;
    at.push((now - from) / 1000);
    look(doubts, seen, now);
  }
  return at;
}

describe("a machine whose last reading is in doubt", () => {
  it("is read again after a power action, at growing intervals, until it reaches the intended power state", () => {
    const doubts = new Doubts();
    look(doubts, is("on"), 0, ...[event(DOWN)]);
    expect(doubts.due(5_000)).toEqual(["abc123"]);
    look(doubts, is("on"), 5_000);
    expect(doubts.due(9_999)).toEqual([]);
    expect(doubts.due(10_000)).toEqual(["abc123"]);
    look(doubts, is("off"), 10_000);
    expect(doubts.due(7_200_000)).toEqual([]);
  });
  it("is read a dozen times in half an hour if it never reaches that state", () => {
    const doubts = new Doubts();
    look(doubts, is("off"), 0, ...[event(UP)]);
    const at = reads(doubts, is("off"));
    expect(at.slice(0, 8)).toEqual([5, 10, 20, 40, 80, 160, 320, 560]);
    expect(at.length).toBeLessThan(15);
    expect((at.at(-1) ?? 0) * 1000).toBeLessThanOrEqual(DOUBT_MS + 240_000);
  });
  it("is intended to reach the state of the last power action", () => {
    const doubts = new Doubts();
    look(doubts, is("off"), 0, ...[event(DOWN, 1), event(UP, 2)]);
    look(doubts, is("off"), 5_000);
    expect(doubts.due(10_000)).toEqual(["abc123"]);
    look(doubts, is("on"), 10_000);
    expect(doubts.due(1_000_000)).toEqual([]);
  });
  it("treats no other event as a power action", () => {
    const doubts = new Doubts();
    look(doubts, is("on"), 0, ...[event("Node changed status")]);
    expect(doubts.due(5_000)).toEqual([]);
  });
  it("is read at once for its stored state, again for a new reason, and no more without a reason", () => {
    const doubts = new Doubts();
    const gone = { systemId: "abc123", key: "gone at 1" };
    doubts.record([gone]);
    expect(doubts.due(0)).toEqual(["abc123"]);
    look(doubts, is("on"), 0);
    expect(reads(doubts, is("on"))).toHaveLength(14);
    doubts.record([gone]);
    expect(doubts.due(7_300_000)).toEqual([]);
    doubts.record([{ ...gone, key: "gone at 2" }]);
    expect(doubts.due(7_300_000)).toEqual(["abc123"]);
    doubts.record([]);
    expect(doubts.due(7_300_000)).toEqual([]);
  });
  it("is still due if the poll that requested it could not read it", () => {
    const doubts = new Doubts();
    doubts.record([{ systemId: "abc123", key: "gone" }]);
    look(doubts, is("on", "other"), 0);
    expect(doubts.due(1)).toEqual(["abc123"]);
  });
  it("is not requested with every poll if MAAS does not return it", () => {
    const doubts = new Doubts();
    doubts.record([{ systemId: "abc123", key: "gone" }]);
    doubts.looked([], { asked: ["abc123"], machines: [] }, 0);
    doubts.looked([], { asked: ["abc123"], machines: [] }, 5_000);
    expect(doubts.due(9_999)).toEqual([]);
  });
});
