/** The steps that read an instance. */
import { Instance } from "../../../../shared/api/instances.ts";
import { describeInstance, listedInstance, readInstance, stateOf } from "../instance.ts";
import { ADMIN, absent, argument, INSTANCE, type Step } from "../step.ts";

export const listInstances: Step = {
  name: "list_instances",
  phase: "test",
  seconds: 60,
  args: INSTANCE,
  run: async (hub, args) => {
    const target = argument(args, "instance-id");
    const all = await hub.all(Instance, `${ADMIN}/instances`);
    const instances = all.map(listedInstance);
    const found = instances.some(({ instance_id: id }) => id === target);
    return { success: true, instances, count: instances.length, target_instance: target, found_target: found };
  },
};

export const describe: Step = {
  name: "describe_instance",
  phase: "test",
  seconds: 60,
  args: { ...INSTANCE, "key-file": "{{steps.launch_instance.key_file}}" },
  run: async (hub, args) => {
    const instance = await readInstance(hub, argument(args, "instance-id"));
    const more = { key_file: argument(args, "key-file"), ssh_user: instance.login_user };
    return { success: true, ...describeInstance(instance), ...more };
  },
};

export const verifyTags: Step = {
  name: "verify_tags",
  phase: "test",
  seconds: 60,
  args: INSTANCE,
  run: async (hub, args) => {
    const { id, labels } = await readInstance(hub, argument(args, "instance-id"));
    return { success: true, instance_id: id, tags: labels, tag_count: Object.keys(labels).length };
  },
};

/** Names the system that the agent has found on the host, not the one that was ordered. */
export const verifyImage: Step = {
  name: "verify_image",
  phase: "test",
  seconds: 60,
  args: INSTANCE,
  run: async (hub, args) => {
    const instance = await readInstance(hub, argument(args, "instance-id"));
    const { inventory } = await hub.node(instance.node_id);
    if (inventory === null) throw new Error(`The agent of ${instance.hostname} has not said which system it runs.`);
    const { distro, release, kernel, arch } = inventory.os;
    const state = stateOf(instance);
    return {
      success: true,
      instance_id: instance.id,
      image_id: `${distro} ${release} ${arch}`,
      image_name: `${distro} ${release}, kernel ${kernel}`,
      instance_state: state,
      state,
    };
  },
};

export const ABSENT_OF_INSTANCES: readonly Step[] = [
  absent("topology_placement", "test", "Muster has no placement groups"),
  absent("serial_console", "test", "MAAS has no API for serial consoles"),
  absent("host_status_log", "test", "Muster reads no logs of a tenant's host; the check needs SSH to it"),
];
