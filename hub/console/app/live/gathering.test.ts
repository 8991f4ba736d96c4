import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Gathering } from "./gathering.ts";
import { EVERYTHING } from "./topics.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("tells of an object within some moments, and of a list that changes all the time every few seconds", () => {
  const told: string[][] = [];
  const gathering = new Gathering((changed) => told.push([...changed]));
  gathering.add(["operations", "onboardings/1"]);
  gathering.add(["operations", "onboardings/2"]);
  vi.advanceTimersByTime(1_500);
  expect(told.splice(0)).toEqual([["operations", "onboardings/1", "onboardings/2"]]);
  gathering.add(["operations", "onboardings/1"]);
  vi.advanceTimersByTime(1_500);
  expect(told.splice(0)).toEqual([["onboardings/1"]]);
  gathering.add(["operations", "onboardings/3"]);
  vi.advanceTimersByTime(5_000);
  expect(told.splice(0)).toEqual([["onboardings/3"], ["operations"]]);
  expect(vi.getTimerCount()).toBe(0);
});

it("tells at once that everything is stale", () => {
  const told: string[][] = [];
  const gathering = new Gathering((changed) => told.push([...changed]));
  gathering.add(["nodes"]);
  vi.advanceTimersByTime(1_500);
  gathering.add(["nodes", EVERYTHING]);
  vi.advanceTimersByTime(1_500);
  expect(told).toEqual([["nodes"], ["nodes", EVERYTHING]]);
  gathering.add(["nodes"]);
  gathering.stop();
  expect(vi.getTimerCount()).toBe(0);
});
