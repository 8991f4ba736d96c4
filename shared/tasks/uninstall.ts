import { z } from "zod";
import { defineTask } from "./define-task.ts";

/**
 * The agent takes itself and what Muster put on the host away (lifecycle 5.4, 5.8). The task itself only looks whether that can be done and
 * answers; the removal begins when the hub has accepted the answer, i.e. when no cancel came before it. So nothing is gone
 * from a host whose hub believes it to be there.
 */
export const uninstall = defineTask({
  type: "node.uninstall",
  lane: "work",
  leaseSeconds: 120,
  destructive: true,
  effectOnceAccepted: true,
  input: z.strictObject({ reason: z.string().min(1).max(512) }),
  result: z.strictObject({
    /** Paths of the host that will be removed. */
    removes: z.array(z.string().max(256)).max(200),
  }),
  progress: z.null(),
  errors: { not_removable: "fail" },
});
