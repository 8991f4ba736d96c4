import { z } from "zod";
import { LoginUser } from "../linux-user.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const REVOKE_STEPS = [
  "lock",
  "sudo",
  "linger",
  "sessions",
  "processes",
  "cron",
  "at",
  "sysv_ipc",
  "posix_ipc",
  "keyrings",
  "runtime_folder",
  "mail",
  "sub_ids",
  "home",
  "account",
] as const;

/**
 * Removes a tenant's account from the host with everything that runs or waits for it (architecture 14.2). Files of the account in other folders, such
 * as `/tmp`, are the work of the storage cleanup. The task is not destructive in the catalogue's sense, because a second run removes only what the
 * first run left, and only of the account that Muster recorded for this allocation.
 */
export const revokeUser = defineTask({
  type: "allocation.revoke_user",
  lane: "work",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({ allocation_id: z.uuid(), login_user: LoginUser, plan: z.boolean() }),
  result: z.strictObject({
    /** The uid of the removed account. The uid is null if this host's present image never had an account for the allocation. */
    uid: z.int().nullable(),
    steps: cleaningStepsNamed(REVOKE_STEPS),
  }),
  progress: z.strictObject({ step: z.enum(REVOKE_STEPS) }),
  errors: {
    /** The account of the name is not the account that Muster made for this allocation. The agent has changed nothing. */
    not_our_account: "fail",
    /** A process of the account did not end after SIGKILL. The error's message names the process. */
    processes_survive: "fail",
    account_remains: "retry",
  },
});
