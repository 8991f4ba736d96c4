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

export const MOST_ROOT_WAYS = 16;

/**
 * Removes a tenant's account from the host, with the account's processes, sessions and planned jobs (architecture 14.2). The task
 * `node.storage_cleanup` removes the tenant's files in other folders than the home, such as `/tmp`. The task `allocation.revoke_user` is not
 * destructive, because a second run removes only what is left of the allocation's own account.
 */
export const revokeUser = defineTask({
  type: "allocation.revoke_user",
  changes: "host",
  leaseSeconds: 300,
  destructive: false,
  input: z.strictObject({ allocation_id: z.uuid(), login_user: LoginUser, plan: z.boolean() }),
  result: z.strictObject({
    /** `uid` is null if the host has had no account of the allocation since the host was last installed. */
    uid: z.int().nullable(),
    steps: cleaningStepsNamed(REVOKE_STEPS),
    /**
     * How the tenant's account could get the rights of root, for example `group docker` (decision C4); empty if the agent found no way. An agent
     * before version 0.2.0 does not report the ways to root.
     */
    root_by: z.array(z.string().min(1).max(64)).max(MOST_ROOT_WAYS).default([]),
  }),
  progress: z.strictObject({ step: z.enum(REVOKE_STEPS) }),
  errors: {
    /** The host's account with the tenant's login name is not the account that Muster made for the allocation. */
    not_our_account: "fail",
    /** A process of the tenant's account did not end after SIGKILL. */
    processes_survive: "fail",
    account_remains: "retry",
  },
});
