import { z } from "zod";

/** Whether the tenants' accounts on the hosts have the SSH keys that they should have. */
export const KeySyncStatus = z.enum(["synced", "syncing", "error"]);
export type KeySyncStatus = z.output<typeof KeySyncStatus>;
