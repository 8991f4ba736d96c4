import { describe, expect, it } from "vitest";
import type { MaasEvent, MaasMachine } from "../maas/port.ts";
import { machine } from "../workflows/machine/machines.fixture.ts";
import { RepeatedReadings, SERIES_MS } from "./repeated-readings.ts";

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

const poll = (rereads: RepeatedReadings, seen: MaasMachine, now: number, ...news: MaasEvent[]): void =>
  rereads.polled(news, { asked: [seen.systemId], machines: [seen] }, now);

function reads(rereads: RepeatedReadings, seen: MaasMachine, from = 0): number[] {
  const at: number[] = [];
  for (let now = from + 5_000; now <= from + 7_200_000; now += 5_000) {
    if (!rereads.due(now).includes("abc123")) continue;
    at.push((now - from) / 1000);
    poll(rereads, seen, now);
  }
  return at;
}

describe("a machine whose last reading may be outdated", () => {
  it("is read again after a power action, at growing intervals, until it reaches the intended power state", () => {
    const rereads = new RepeatedReadings();
    poll(rereads, is("on"), 0, ...[event(DOWN)]);
    expect(rereads.due(5_000)).toEqual(["abc123"]);
    poll(rereads, is("on"), 5_000);
    expect(rereads.due(9_999)).toEqual([]);
    expect(rereads.due(10_000)).toEqual(["abc123"]);
    poll(rereads, is("off"), 10_000);
    expect(rereads.due(7_200_000)).toEqual([]);
  });
  it("is read a dozen times in half an hour if it never reaches that state", () => {
    const rereads = new RepeatedReadings();
    poll(rereads, is("off"), 0, ...[event(UP)]);
    const at = reads(rereads, is("off"));
    expect(at.slice(0, 8)).toEqual([5, 10, 20, 40, 80, 160, 320, 560]);
    expect(at.length).toBeLessThan(15);
    expect((at.at(-1) ?? 0) * 1000).toBeLessThanOrEqual(SERIES_MS + 240_000);
  });
  it("is intended to reach the state of the last power action", () => {
    const rereads = new RepeatedReadings();
    poll(rereads, is("off"), 0, ...[event(DOWN, 1), event(UP, 2)]);
    poll(rereads, is("off"), 5_000);
    expect(rereads.due(10_000)).toEqual(["abc123"]);
    poll(rereads, is("on"), 10_000);
    expect(rereads.due(1_000_000)).toEqual([]);
  });
  it("treats no other event as a power action", () => {
    const rereads = new RepeatedReadings();
    poll(rereads, is("on"), 0, ...[event("Node changed status")]);
    expect(rereads.due(5_000)).toEqual([]);
  });
  it("is read at once for its stored state, again for a new reason, and no more without a reason", () => {
    const rereads = new RepeatedReadings();
    const gone = { systemId: "abc123", key: "gone at 1" };
    rereads.record([gone]);
    expect(rereads.due(0)).toEqual(["abc123"]);
    poll(rereads, is("on"), 0);
    expect(reads(rereads, is("on"))).toHaveLength(14);
    rereads.record([gone]);
    expect(rereads.due(7_300_000)).toEqual([]);
    rereads.record([{ ...gone, key: "gone at 2" }]);
    expect(rereads.due(7_300_000)).toEqual(["abc123"]);
    rereads.record([]);
    expect(rereads.due(7_300_000)).toEqual([]);
  });
  it("is still due if the poll that requested it could not read it", () => {
    const rereads = new RepeatedReadings();
    rereads.record([{ systemId: "abc123", key: "gone" }]);
    poll(rereads, is("on", "other"), 0);
    expect(rereads.due(1)).toEqual(["abc123"]);
  });
  it("is not requested with every poll if MAAS does not return it", () => {
    const rereads = new RepeatedReadings();
    rereads.record([{ systemId: "abc123", key: "gone" }]);
    rereads.polled([], { asked: ["abc123"], machines: [] }, 0);
    rereads.polled([], { asked: ["abc123"], machines: [] }, 5_000);
    expect(rereads.due(9_999)).toEqual([]);
  });
});
