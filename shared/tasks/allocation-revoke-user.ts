import { z } from "zod";
import { LoginUser } from "../linux-user.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const REVOKE_STEPS = [
  "root_access",
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

/** A result names at most this many ways to the rights of root. */
export const MOST_ROOT_WAYS = 16;

/**
 * Removes a tenant's account from the host, with the account's processes, sessions and planned jobs (architecture 14.2). The task
 * `node.storage_cleanup` removes the account's files in other folders than its home, such as `/tmp`. The task `allocation.revoke_user` is not
 * destructive, because a second run removes only remains of the account that Muster recorded for the allocation.
 */
export const revokeUser = defineTask({
  type: "allocation.revoke_user",
  lane: "work",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({ allocation_id: z.uuid(), login_user: LoginUser, plan: z.boolean() }),
  result: z.strictObject({
    /**
     * The uid of the tenant's removed account. The uid in the result is null if the allocation has had no account since the host was last installed.
     */
    uid: z.int().nullable(),
    steps: cleaningStepsNamed(REVOKE_STEPS),
    /**
     * How the account could get the rights of root, for example `group docker` (decision C4); empty if the agent found no way. An agent before version
     * 0.2.0 does not report the ways to root.
     */
    root_by: z.array(z.string().min(1).max(64)).max(MOST_ROOT_WAYS).default([]),
  }),
  progress: z.strictObject({ step: z.enum(REVOKE_STEPS) }),
  errors: {
    /**
     * The host's account with the tenant's login name is not the account that Muster made for the allocation. With the error `not_our_account`, the
     * agent has changed nothing.
     */
    not_our_account: "fail",
    /** A process of the tenant's account did not end after SIGKILL. The message of the error `processes_survive` names the process. */
    processes_survive: "fail",
    account_remains: "retry",
  },
});
