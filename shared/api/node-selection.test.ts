import { describe, expect, it } from "vitest";
import { NodeId } from "../ids.ts";
import { type BatchRefusal, groupRefusals } from "./node-selection.ts";

const ID = "6f0c63b4-7a39-4b58-9d13-3f1c83a7a1fe";
const refusal = (hostname: string | null, message: string, error_code: BatchRefusal["error_code"] = "conflict") => ({
  ...{ node_id: NodeId.parse(ID), hostname, error_code, message },
});

describe("the groups of refused nodes", () => {
  it("joins nodes whose reasons differ only in hostname and id, the largest group first", () => {
    const groups = groupRefusals([
      refusal("c1.dc", "Node c1.dc is retired."),
      refusal("c2", `Node c2 is held by ${ID}.`),
      refusal("c3", "Node c3 is held by 7f0c63b4-7a39-4b58-9d13-3f1c83a7a1ff."),
      refusal(null, `Site s has no node ${ID}.`, "not_found"),
      refusal("c4", "Node c4 is held by 7f0c63b4-7a39-4b58-9d13-3f1c83a7a1ff.", "internal_error"),
    ]);
    expect(groups).toEqual([
      { error_code: "conflict", reason: "Node <host> is held by <id>.", count: 2 },
      { error_code: "conflict", reason: "Node <host> is retired.", count: 1 },
      { error_code: "not_found", reason: "Site s has no node <id>.", count: 1 },
      { error_code: "internal_error", reason: "Node <host> is held by <id>.", count: 1 },
    ]);
  });

  it("replaces a hostname only where it stands as a whole word, with its dots as dots", () => {
    const reasonOf = (hostname: string, message: string) => groupRefusals([refusal(hostname, message)])[0]?.reason;
    expect(reasonOf("a", "Node a is a-b, activated, a.")).toBe("Node <host> is a-b, activated, <host>.");
    expect(reasonOf("c1", "Node c1 is beside c10 and xc1.")).toBe("Node <host> is beside c10 and xc1.");
    expect(reasonOf("c.1", "Node c.1 is not cx1.")).toBe("Node <host> is not cx1.");
  });

  it("has no group without refused nodes", () => {
    expect(groupRefusals([])).toEqual([]);
  });
});
