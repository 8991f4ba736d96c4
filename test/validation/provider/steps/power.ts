/** The steps that switch the power of an instance's machine. */
import { PowerAction } from "../../../../shared/api/power.ts";
import type { HubApi } from "../../../support/hub-api.ts";
import { LONG_WAIT_MS, until } from "../../../support/until.ts";
import { answersSsh, bootOf, describeInstance, type Instance, readInstance } from "../instance.ts";
import { ADMIN, argument, INSTANCE, type Step } from "../step.ts";

/** The longest that a power action of Muster may take (docs/timeouts.md), and ten minutes for the host to be ready again. */
const LONGEST_SECONDS = 3_300;

interface Switched {
  readonly instance: Instance;
  /** True if MAAS was seen to report that the machine is off before the action ended. */
  readonly wasOff: boolean;
}

/** Asks for a power action and follows it to its end. */
async function ask(hub: HubApi, id: string, verb: string, body: object = {}): Promise<Switched> {
  const { id: asked } = await hub.call(PowerAction, "POST", `${ADMIN}/instances/${id}/${verb}`, {
    reason: "NVIDIA's validation suite",
    ...body,
  });
  let wasOff = false;
  const ended = await until(
    `${verb} of instance ${id} to end`,
    async () => {
      const instance = await readInstance(hub, id);
      wasOff ||= instance.power_state === "off";
      const { power_action: action } = instance;
      if (action === null || action.id !== asked) throw new Error(`Another power action took the place of ${asked}.`);
      return action.state === "running" ? undefined : { action, instance };
    },
    { timeoutMs: LONGEST_SECONDS * 1_000, everyMs: 200 },
  );
  if (ended.action.state !== "done") throw new Error(`${verb}: ${ended.action.error_message ?? ended.action.state}`);
  return { instance: ended.instance, wasOff };
}

/** Waits until the instance is ready again, and says whether its host then answers as an SSH server within ten seconds. */
async function isBack(hub: HubApi, id: string): Promise<{ instance: Instance; ssh: boolean }> {
  const instance = await until(
    "the instance to be ready again",
    async () => {
      const now = await readInstance(hub, id);
      return now.status === "Ready" ? now : undefined;
    },
    { timeoutMs: LONG_WAIT_MS, everyMs: 500 },
  );
  const deadline = Date.now() + 10_000;
  let ssh = await answersSsh(instance);
  while (!ssh && Date.now() < deadline) {
    await new Promise((done) => setTimeout(done, 500));
    ssh = await answersSsh(instance);
  }
  return { instance, ssh };
}

export const stopInstance: Step = {
  name: "stop_instance",
  phase: "test",
  seconds: LONGEST_SECONDS,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    await ask(hub, id, "power-off");
    return { success: true, ...describeInstance(await readInstance(hub, id)), stop_initiated: true };
  },
};

export const startInstance: Step = {
  name: "start_instance",
  phase: "test",
  seconds: LONGEST_SECONDS,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    await ask(hub, id, "power-on");
    const { instance, ssh } = await isBack(hub, id);
    return { success: true, ...describeInstance(instance), start_initiated: true, ssh_ready: ssh };
  },
};

export const rebootInstance: Step = {
  name: "reboot_instance",
  phase: "test",
  seconds: LONGEST_SECONDS,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    const before = await bootOf(hub, await readInstance(hub, id));
    await ask(hub, id, "reboot");
    const { instance, ssh } = await isBack(hub, id);
    const after = await bootOf(hub, instance);
    return {
      success: true,
      ...describeInstance(instance),
      reboot_initiated: true,
      reboot_confirmed: before !== null && after !== null && before !== after,
      ssh_ready: ssh,
    };
  },
};

export const powerCycleInstance: Step = {
  name: "power_cycle_instance",
  phase: "test",
  seconds: LONGEST_SECONDS,
  args: INSTANCE,
  run: async (hub, args) => {
    const id = argument(args, "instance-id");
    const began = Date.now();
    const { wasOff } = await ask(hub, id, "power-cycle");
    const { instance, ssh } = await isBack(hub, id);
    return {
      success: true,
      ...describeInstance(instance),
      power_cycle_initiated: true,
      power_was_off: wasOff,
      recovery_seconds: Math.round((Date.now() - began) / 1_000),
      ssh_ready: ssh,
    };
  },
};
