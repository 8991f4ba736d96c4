import type { ResidueItem } from "../../shared/residue/items.ts";
import type { TaskHandlers } from "../../shared/tasks/index.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";

/**
 * How often `node.validate_clean` repeats its progress while it reads one item of the host's state (for example its users), to renew the task's lease
 * of 300 s.
 */
const PROGRESS_EVERY_MS = 60_000;
/**
 * The pause, in milliseconds, between two reads of a host state that changes by itself, for example of the list of processes. The pause between two
 * reads of the host's state is longer than most cron jobs run, so that the process of a cron job is not in both reads.
 */
const PAUSE_MS = 3_000;

/**
 * Reads what tenants may have left on the host, and changes nothing except that it may create the secret key for the digests in its report. The input
 * `plan` has no effect, because `node.validate_clean` cleans nothing.
 */
export const validateClean =
  (system: System, pauseMs = PAUSE_MS): TaskHandlers["node.validate_clean"] =>
  async ({ allocation }, run) => {
    let now: { item: ResidueItem; items_read: number; items: number } | null = null;
    const repeat = setInterval(() => {
      if (now !== null) run.progress(now);
    }, PROGRESS_EVERY_MS);
    try {
      const snapshot = await system.residue({
        tenant: allocation,
        pauseMs,
        signal: run.signal,
        onItem: (item, items_read, items) => {
          now = { item, items_read, items };
        },
      });
      return { ok: true, result: { boot_id: await system.bootId(), snapshot } };
    } catch (error) {
      run.signal.throwIfAborted();
      const reason = messageOf(error);
      const message = `No residue snapshot of the host could be taken: ${reason}`;
      return { ok: false, error: "snapshot_failed", message };
    } finally {
      clearInterval(repeat);
    }
  };
