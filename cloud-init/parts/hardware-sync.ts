import { partFile, shellPart } from "./part.ts";

/**
 * Renders the first-boot script that prepares MAAS's hardware sync and records which files MAAS left on the host. The agent's task
 * `node.hw_sync_reseed`, which rewrites the credentials of the hardware sync, does the rest of the setup (decision M3).
 */
export const hardwareSync = shellPart({
  name: "30-hardware-sync.sh",
  owner: "muster",
  body: partFile("hardware-sync.sh"),
  values: ({ hardwareSync: sync }) =>
    sync.enabled ? { MAAS_URL: sync.maasUrl ?? "", SYNC_INTERVAL_SECONDS: sync.intervalSeconds } : null,
});
