import { describe, expect, it } from "vitest";
import { EVENTS } from "../../../../shared/events.ts";
import { areTold, EVERYTHING, isAbout, topicsIn, topicsOf } from "./topics.ts";

describe("the topics of an event", () => {
  it.each([
    [{ subject: "nodes/1" }, ["nodes", "nodes/1"]],
    [{ subject: "onboardings/2", data: { node_id: "1" } }, ["operations", "onboardings/2", "nodes/1"]],
    [{ subject: "allocations/3", data: { node_id: "1" } }, ["allocations", "nodes", "allocations/3", "nodes/1"]],
    [
      { type: "operation.progressed", subject: "decommissions/2", data: { node_id: "1" } },
      ["operations", "decommissions/2", "nodes/1/work"],
    ],
    [{ subject: "hub" }, [EVERYTHING]],
    [{ subject: "moons/4" }, [EVERYTHING]],
    [{}, [EVERYTHING]],
    [null, [EVERYTHING]],
  ])("of %j are %j", (event, topics) => {
    expect(topicsOf(event)).toEqual(topics);
  });

  it("are known for every kind of subject that the hub's events have", () => {
    const subjects = Object.values(EVENTS).map(({ subject }) => subject.replace("{kind}", "onboarding"));
    const unknown = subjects.filter((subject) => topicsOf({ subject }).includes(EVERYTHING));
    expect([...new Set(unknown)]).toEqual(["hub"]);
  });
});

describe("a query", () => {
  it("is stale after a change of one of its topics, or of everything", () => {
    const about = topicsIn({ about: ["nodes/1", "operations"] });
    expect(isAbout(about, new Set(["nodes", "nodes/1"]))).toBe(true);
    expect(isAbout(about, new Set(["nodes", "nodes/2"]))).toBe(false);
    expect(isAbout(about, new Set([EVERYTHING]))).toBe(true);
    expect(isAbout(topicsIn(undefined), new Set(["nodes"]))).toBe(false);
  });
});

it("knows the topics of which no event tells", () => {
  expect([["nodes", "nodes/1"], ["operations"], ["maas-sites/2", "sites"], ["approvals"]].map(areTold)).toEqual(
    Array(4).fill(true),
  );
  expect([["audit"], ["skus"], ["sessions", "tokens"], ["records/1"]].map(areTold)).toEqual(Array(4).fill(false));
});
