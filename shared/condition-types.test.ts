import { describe, expect, it } from "vitest";
import {
  AGENT_REPEATS_WITHIN_SECONDS,
  CONDITION_SOURCES,
  CONDITION_TYPES,
  classOf,
  maySay,
  ruleOf,
} from "./condition-types.ts";

const types = Object.keys(CONDITION_TYPES) as (keyof typeof CONDITION_TYPES)[];

describe("the condition types", () => {
  it.each(types)("can be reported by the sources of %s only", (type) => {
    const sources: readonly string[] = CONDITION_TYPES[type].sources;
    expect(CONDITION_SOURCES.filter((source) => maySay(source, type))).toEqual(
      CONDITION_SOURCES.filter((source) => sources.includes(source)),
    );
  });

  it("leave other names to external systems, except for the names of agents", () => {
    const sayers = (type: string) => CONDITION_SOURCES.filter((source) => maySay(source, type));
    expect(sayers("fabric.ready")).toEqual(["external"]);
    for (const type of ["agent.unheard_of", "bootstrap.tenant", "agent.constructor"]) expect(sayers(type)).toEqual([]);
    for (const type of ["probe.ssh", "probe.agent.healthy"]) expect(sayers(type)).toEqual(["hub"]);
    expect(ruleOf("fabric.ready")).toMatchObject({ lifeSeconds: null, bars: "never" });
  });

  it("have a class, and only a barring condition can keep work off a node", () => {
    const ofClass = (one: string) => types.filter((type) => classOf(type) === one && type.startsWith("h"));
    expect(ofClass("barring")).toEqual([
      "hardware.sku",
      "hardware.gpus",
      "health.gpu",
      "health.disks",
      "health.memory",
    ]);
    expect(ofClass("warning")).toEqual([
      ...["hardware.nics", "health.gpu_wear", "health.disk_wear", "health.disk_room", "health.memory_wear"],
      ...["health.kernel", "health.clock"],
    ]);
    expect([classOf("cloud_init.done"), classOf("fabric.ready"), classOf("agent.unheard_of")]).toEqual(
      Array.from({ length: 3 }, () => "information"),
    );
  });

  it("have a life of several repeats when they are repeated, and none when they record an event", () => {
    for (const type of types) {
      const { lifeSeconds } = CONDITION_TYPES[type];
      if (lifeSeconds !== null) expect(lifeSeconds).toBeGreaterThanOrEqual(3 * AGENT_REPEATS_WITHIN_SECONDS);
    }
    expect(CONDITION_TYPES["agent.healthy"].lifeSeconds).not.toBeNull();
    expect(CONDITION_TYPES["os.booted"].lifeSeconds).toBeNull();
  });
});
