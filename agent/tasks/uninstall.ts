import type { TaskHandlers } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";
import { footprint, probeRemoval } from "../uninstall.ts";

/**
 * Says whether this host can be rid of Muster, and of what. Nothing is removed here: that begins once the hub has accepted this result
 * (`effectOnceAccepted`), so a cancel, a lost result or a killed agent leaves a host that works.
 */
export const uninstall =
  (system: System): TaskHandlers["node.uninstall"] =>
  async () => {
    try {
      await probeRemoval(system);
      return { ok: true, result: { removes: [...(await footprint(system))] } };
    } catch (error) {
      return {
        ok: false,
        error: "not_removable",
        message: `What Muster put on this host cannot be removed: ${error instanceof Error ? error.message : String(error)}. Nothing was removed.`,
      };
    }
  };
