import { describe, expect, it } from "vitest";
import { type NodeVerb, whyNot } from "./node-verbs.ts";

const node = {
  status: "active",
  cordon_reason: null,
  cordon_owner: null,
  allocation: null,
  onboarding_mode: "maas",
  conditions: [],
} as const;
const allowed = (given: object, ...verbs: NodeVerb[]): NodeVerb[] =>
  verbs.filter((verb) => whyNot(verb, { ...node, conditions: [], ...given } as never) === null);

describe("the verbs of a node", () => {
  it("applies each verb only where it has an effect", () => {
    expect(allowed({}, "cordon", "drain", "quarantine", "activate", "remove", "lift_quarantine")).toEqual([
      "cordon",
      "drain",
      "quarantine",
    ]);
    expect(allowed({ status: "retired" }, "drain", "activate", "release", "remove")).toEqual([
      "activate",
      "release",
      "remove",
    ]);
    expect(allowed({ status: "deleted" }, "cordon", "drain", "release", "remove", "clear_reports")).toEqual([
      "release",
    ]);
  });

  it("leaves the cordon of an operation to the operation", () => {
    expect(allowed({ cordon_reason: "disk", cordon_owner: "operator:ann" }, "cordon", "uncordon")).toEqual([
      "uncordon",
    ]);
    expect(
      whyNot("uncordon", { ...node, conditions: [], cordon_reason: "drain", cordon_owner: "operation:1" }),
    ).toContain("belongs to operation:1");
    expect(whyNot("uncordon", { ...node, conditions: [] })).toBe("The node is not cordoned.");
  });

  it("takes no node from its tenant, and no machine that Muster does not manage", () => {
    const allocation = { id: "a", tenant: "acme", status: "active" } as const;
    expect(allowed({ allocation }, "storage_cleanup", "full_decommission", "soft_reset")).toEqual(["soft_reset"]);
    expect(whyNot("storage_cleanup", { ...node, conditions: [], allocation })).toContain("acme");
    expect(allowed({ onboarding_mode: "manual" }, "reimage", "full_decommission", "drain")).toEqual(["drain"]);
  });

  it("replaces an identity only if the node is offline or two hosts used the identity", () => {
    const conditions = [{ type: "agent.identity", status: "False" }];
    expect(allowed({}, "re_enroll")).toEqual([]);
    expect(allowed({ status: "offline" }, "re_enroll")).toEqual(["re_enroll"]);
    expect(allowed({ conditions }, "re_enroll")).toEqual(["re_enroll"]);
  });
});
