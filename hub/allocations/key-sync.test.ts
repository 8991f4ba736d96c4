import { describe, expect, it } from "vitest";
import { keySync, worstSync } from "./key-sync.ts";

const STEP = { step: "keys", target: "alice", message: "", evidence: {} } as const;
const task = (state: string, outcome: "ok" | "failed" = "ok") => ({
  type: "allocation.grant_user",
  state: state as "queued",
  result: state === "succeeded" ? { uid: 20_001, steps: [{ ...STEP, outcome }] } : null,
  errorCode: state === "expired" ? "deadline_passed" : null,
  errorMessage: state === "expired" ? "No agent was connected" : null,
});
const FACTS = {
  hostname: "c1",
  status: "active",
  errorMessage: null,
  isDue: false,
  node: "active",
  task: null,
  isTaskGone: false,
} as const;

describe("whether an account has the keys of its allocation", () => {
  it.each([
    ["an active allocation without a change", {}, "synced", null],
    ["an account that is being made", { status: "granting" }, "syncing", "makes the account"],
    ["an account that is being made, with another change", { status: "granting", isDue: true }, "syncing", "makes"],
    ["an account that could not be made", { status: "failed", errorMessage: "no disk" }, "error", "no disk"],
    ["a change that nobody has ordered yet", { isDue: true }, "syncing", "are to be changed"],
    ["a change on an offline host", { isDue: true, node: "offline" }, "syncing", "it is offline"],
    ["a change on a host that is gone", { isDue: true, node: null }, "syncing", "it is gone"],
    ["a queued order", { task: task("queued") }, "syncing", "changes the keys"],
    ["an order that an agent carries out", { task: task("running") }, "syncing", "changes the keys"],
    ["an order that succeeded", { task: task("succeeded") }, "synced", null],
    ["an order that succeeded, and another change", { task: task("succeeded"), isDue: true }, "syncing", "are to be"],
    ["an order with a failed step", { task: task("succeeded", "failed") }, "error", "step keys"],
    ["an order that expired", { task: task("expired") }, "error", "No agent was connected"],
    ["an order that expired, and another change", { task: task("expired"), isDue: true }, "error", "No agent"],
    ["an order that is gone", { isTaskGone: true }, "error", "is gone"],
    ["a change of an account that could not be made", { status: "failed", isDue: true }, "error", "may still be in"],
    ["an allocation that ends", { status: "ending", isDue: true }, "syncing", "turnover removes the account"],
    ["an allocation that has ended", { status: "ended", isDue: true }, "synced", null],
  ] as const)("%s", (_what, change, status, reason) => {
    const sync = keySync({ ...FACTS, ...change });
    expect(sync.status).toBe(status);
    if (reason === null) expect(sync.reason).toBeNull();
    else expect(sync.reason).toContain(reason);
  });

  it("is for a group the worst of its allocations, and synced without any", () => {
    const [synced, syncing, error] = (["synced", "syncing", "error"] as const).map((status) => ({
      status,
      reason: status,
    }));
    if (synced === undefined || syncing === undefined || error === undefined) throw new Error("there are three");
    expect(worstSync([])).toEqual({ status: "synced", reason: null });
    expect(worstSync([synced, syncing])).toBe(syncing);
    expect(worstSync([syncing, error, synced])).toBe(error);
    expect(worstSync([synced, synced])).toBe(synced);
  });
});
