import { DecommissionCreated, DecommissionDetail } from "../../../../shared/api/decommissions.ts";
import { until } from "../../../support/until.ts";
import { bootOf, describeInstance, instanceIs, readInstance } from "../instance.ts";
import { ADMIN, argument, INSTANCE, type Step } from "../step.ts";

/** A host of a real site may take an hour for a release and a deploy. */
const LONGEST_SECONDS = 5_400;

export const reinstallInstance: Step = {
  name: "reinstall_instance",
  phase: "test",
  seconds: LONGEST_SECONDS,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    const before = await bootOf(hub, await readInstance(hub, id));
    const asked = { reason: "NVIDIA's validation suite", acknowledge_data_loss: true };
    const { decommission_id } = await hub.call(
      DecommissionCreated,
      "POST",
      `${ADMIN}/instances/${id}/reinstall`,
      asked,
    );
    const ended = await until(
      "the reinstall to end",
      async () => {
        const now = await hub.call(DecommissionDetail, "GET", `${ADMIN}/decommissions/${decommission_id}`);
        return ["pending", "running", "compensating"].includes(now.status) ? undefined : now;
      },
      { timeoutMs: (LONGEST_SECONDS - 540) * 1_000, everyMs: 500 },
    );
    if (ended.status !== "completed")
      throw new Error(`The reinstall is ${ended.status} in ${ended.current_stage}: ${ended.error_message}`);
    const instance = await instanceIs(hub, id, "Ready", 480);
    const after = await bootOf(hub, instance);
    return {
      success: before !== after,
      ...describeInstance(instance),
      reinstall_method: "release and deploy by MAAS",
      operation_id: decommission_id,
    };
  },
};
