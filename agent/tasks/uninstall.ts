import type { TaskHandlers } from "../../shared/tasks/index.ts";
import { cleaningStep, namesIn } from "../accounts/step.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";
import { footprint, probeRemoval } from "../uninstall.ts";

/**
 * The removal of Muster begins only after the hub has accepted the result of the uninstall task (`effectOnceAccepted`). Until the hub has accepted
 * the uninstall's result, a cancel, a lost result or a killed agent leaves a working host.
 */
export const uninstall =
  (system: System): TaskHandlers["node.uninstall"] =>
  async (input) => {
    try {
      if (input.plan === true) {
        const removes = [...(await footprint(system))];
        const message = `${removes.length} files and folders would be removed: ${namesIn(removes) || "none"}.`;
        return { ok: true, result: { removes, steps: [cleaningStep("remove", "host", "planned", message)] } };
      }
      await probeRemoval(system);
      return { ok: true, result: { removes: [...(await footprint(system))] } };
    } catch (error) {
      return {
        ok: false,
        error: "not_removable",
        message: `What Muster put on this host cannot be removed: ${messageOf(error)}. Nothing was removed.`,
      };
    }
  };
