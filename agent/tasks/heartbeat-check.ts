import type { TaskHandlers } from "../../shared/tasks/index.ts";
import { VERSION } from "../../shared/version.ts";
import type { System } from "../system/system.ts";

export const heartbeatCheck =
  (system: System): TaskHandlers["node.heartbeat_check"] =>
  async (input) => ({
    ok: true,
    result: {
      nonce: input.nonce,
      boot_id: await system.bootId(),
      uptime_seconds: system.uptimeSeconds(),
      agent_version: VERSION,
    },
  });
