import { readFileSync } from "node:fs";
import { AllocationDetail } from "../../../../shared/api/allocations.ts";
import { describeInstance, instanceIs } from "../instance.ts";
import { ADMIN, argument, type Step } from "../step.ts";

/**
 * Gives a free node to a tenant. `MUSTER_VALIDATION_HOST` names the host; without it, any free node is taken. `MUSTER_VALIDATION_KEY` is the file of a
 * private SSH key, beside which is its public key.
 */
export const launchInstance: Step = {
  name: "launch_instance",
  phase: "setup",
  seconds: 600,
  args: { name: "muster-validation" },
  run: async (hub, args) => {
    const wanted = process.env["MUSTER_VALIDATION_HOST"];
    const key = process.env["MUSTER_VALIDATION_KEY"];
    if (key === undefined) throw new Error("Set MUSTER_VALIDATION_KEY to the file of a private SSH key.");
    const free = (await hub.nodes()).filter(({ schedulable }) => schedulable);
    const node = free.find(({ hostname }) => wanted === undefined || hostname === wanted);
    if (node === undefined) throw new Error(`No free node: ${wanted ?? "none of the fleet is schedulable"}.`);
    const name = argument(args, "name");
    const { id } = await hub.call(AllocationDetail, "POST", `${ADMIN}/allocations`, {
      node_id: node.id,
      tenant: "validation",
      login_user: "validation",
      ssh_keys: [readFileSync(`${key}.pub`, "utf8").trim()],
      name,
      labels: { Name: name, CreatedBy: "validation" },
    });
    const instance = await instanceIs(hub, id, "Ready", 540);
    return {
      success: instance.status === "Ready",
      ...describeInstance(instance),
      key_file: key,
      ssh_user: instance.login_user,
      message: instance.status_reason,
    };
  },
};
