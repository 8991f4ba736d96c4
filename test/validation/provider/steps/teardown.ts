import { AllocationDetail } from "../../../../shared/api/allocations.ts";
import { SanitizationSummary } from "../../../../shared/api/sanitization.ts";
import { HubProblem } from "../../../support/hub-api.ts";
import { until } from "../../../support/until.ts";
import { readInstance } from "../instance.ts";
import { ADMIN, argument, INSTANCE, type Step } from "../step.ts";

const LONGEST_SECONDS = 5_400;

/** Releases the instance and waits until its host is clean. */
export const teardown: Step = {
  name: "teardown",
  phase: "teardown",
  seconds: LONGEST_SECONDS,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    await hub.call(AllocationDetail, "POST", `${ADMIN}/allocations/${id}/release`, { reason: "The suite is over" });
    let last = "";
    const ended = await until(
      "the turnover to end",
      async () => {
        const now = await hub.call(AllocationDetail, "GET", `${ADMIN}/allocations/${id}`);
        last = `${now.status}: ${now.error_message ?? "the host is cleaned"}`;
        return now.status === "ended" ? now : undefined;
      },
      { timeoutMs: (LONGEST_SECONDS - 60) * 1_000, everyMs: 500, explain: () => Promise.resolve(last) },
    );
    return { success: true, resources_deleted: [ended.id], message: `Cleaned by ${ended.decommission_id}` };
  },
};

/** Reads by other routes than the teardown that the instance is gone, and that a record says how the host was cleaned. */
export const verifyTeardown: Step = {
  name: "verify_teardown",
  phase: "teardown",
  seconds: 120,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    const isGone = await readInstance(hub, id).then(
      () => false,
      (error: unknown) => {
        if (error instanceof HubProblem && error.problem.status === 404) return true;
        throw error;
      },
    );
    const { node_id: node } = await hub.call(AllocationDetail, "GET", `${ADMIN}/allocations/${id}`);
    const records = await hub.all(SanitizationSummary, `${ADMIN}/sanitization-records?node_id=${node}`);
    const record = records.find(({ allocation_id: of }) => of === id);
    const isCleaned = record !== undefined && record.verdict !== "not_clean";
    const checks = { instance_terminated: isGone, host_cleaned: isCleaned };
    return {
      success: isGone && isCleaned,
      checks,
      message: record === undefined ? "No sanitization record." : `Record ${record.record_id}: ${record.verdict}`,
    };
  },
};
