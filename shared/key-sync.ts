import { z } from "zod";

/** Whether the accounts on the hosts have the keys that they should have. */
export const KeySyncStatus = z.enum(["synced", "syncing", "error"]);
export type KeySyncStatus = z.output<typeof KeySyncStatus>;
