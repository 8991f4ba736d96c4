import type { TaskHandlers } from "../../shared/tasks/index.ts";
import { cleaningStep } from "../accounts/step.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { isDraining, unmark } from "./drain.ts";

/** Allows logins again, after a drain was given up or when a retired node becomes active again. */
export const undrain =
  (system: System): TaskHandlers["node.undrain"] =>
  async (input) => {
    try {
      const was_draining = await isDraining(system);
      if (input.plan === true) {
        const message = was_draining
          ? "Logins would be allowed again, unless another program prevents them."
          : "The host is not draining, so nothing would change.";
        return { ok: true, result: { was_draining, steps: [cleaningStep("logins", "host", "planned", message)] } };
      }
      await unmark(system);
      return { ok: true, result: { was_draining } };
    } catch (error) {
      return {
        ok: false,
        error: "unmark_failed",
        message: `The marks of the drain could not be removed: ${messageOf(error)}`,
      };
    }
  };
