import { z } from "zod";
import { LoginUser } from "../linux-user.ts";
import { MOST_KEYS_OF_AN_ACCOUNT, SshPublicKey } from "../ssh-key.ts";
import { FIRST_TENANT_UID, LAST_TENANT_UID } from "../tenant-uids.ts";
import { cleaningStepsNamed } from "./cleaning-step.ts";
import { defineTask } from "./define-task.ts";

export const GRANT_STEPS = ["record", "group", "account", "home", "keys", "sudo"] as const;

/**
 * Makes a tenant's account on the host (architecture 14.1), with a home, SSH keys, and sudo rights if the allocation grants them. The uid and the
 * group of the tenant's account have belonged to no earlier allocation of the machine. The task `allocation.grant_user` is not destructive: a second
 * run finds what the first run made, and changes nothing.
 */
export const grantUser = defineTask({
  type: "allocation.grant_user",
  changes: "host",
  leaseSeconds: 180,
  destructive: false,
  input: z.strictObject({
    allocation_id: z.uuid(),
    login_user: LoginUser,
    ssh_keys: z.array(SshPublicKey).min(1).max(MOST_KEYS_OF_AN_ACCOUNT),
    root: z.boolean(),
    plan: z.boolean(),
    /**
     * The lowest uid that the tenant's account may get: tenants of an earlier operating system of the machine had lower uids, and their files may
     * still be on data disks. The order has the field `lowest_uid` only if an earlier operating system of the machine had tenants, because an older
     * agent does not know the field.
     */
    lowest_uid: z
      .int()
      .min(FIRST_TENANT_UID)
      .max(LAST_TENANT_UID + 1)
      .exactOptional(),
  }),
  result: z.strictObject({
    /** `uid` is null if the order only asks for a plan (`plan: true`) and the host has no account for the allocation yet. */
    uid: z.int().nullable(),
    steps: cleaningStepsNamed(GRANT_STEPS),
  }),
  progress: z.strictObject({ step: z.enum(GRANT_STEPS) }),
  errors: {
    /** The host already has an account or a group with the tenant's login name, which Muster did not make for the allocation. */
    account_exists: "fail",
    /** The agent has already removed the allocation's account from the host, and refuses a late order that would create the account again. */
    allocation_ended: "fail",
    account_failed: "retry",
    keys_failed: "retry",
  },
});
