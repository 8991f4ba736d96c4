import { describe, expect, it } from "vitest";
import { NODE_STATUSES, type NodeStatus } from "../../shared/node-status.ts";
import { enrollAgain, getsBootstrapCommand, RE_ENROLLED } from "./enroll-again.ts";

const MODES = ["maas", "manual", "adopted", "external"] as const;
const every = NODE_STATUSES.flatMap((status) =>
  MODES.map((onboardingMode) => ({ status, onboardingMode, runsAgent: true })),
);
/** The statuses from which one step of a person leads to a status in which the host may enroll again. */
const STEP: Readonly<Partial<Record<NodeStatus, RegExp>>> = {
  draining: /^Cancel the operation/,
  retired: /^Activate the node \(activate-node\), then/,
};

describe("the advice how a host enrolls once more", () => {
  it.each(every)("names only a command that the hub does not refuse: $onboardingMode, $status", (node) => {
    const advice = enrollAgain(node);
    const step = STEP[node.status];
    expect(advice.includes("re-enroll-node")).toBe(RE_ENROLLED.has(node.status) || step !== undefined);
    if (step !== undefined) expect(advice).toMatch(step);
    expect(advice.includes("create-bootstrap-command")).toBe(getsBootstrapCommand(node));
    const byDeploy = node.onboardingMode === "maas" && ["bootstrap_issued", "enrolling"].includes(node.status);
    expect(advice.includes("restart-clean")).toBe(byDeploy);
  });
});
