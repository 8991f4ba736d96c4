import { randomUUID } from "node:crypto";
import type { TaskInput } from "../../shared/tasks/index.ts";
import type { TenantWorld } from "./tenant-world.ts";

export type GrantOrder = TaskInput<"allocation.grant_user">;

export const sshKeyOf = (letter: string): string =>
  `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${letter.repeat(43)} ${letter}@example`;

let count = 0;
/** Returns an order to the agent for a tenant's new account. By default, each order has an allocation and a user name of its own. */
export function grantOrder(change: Partial<GrantOrder> = {}): GrantOrder {
  count += 1;
  const login_user = `mtst-${count}`;
  return { allocation_id: randomUUID(), login_user, ssh_keys: [sshKeyOf("A")], root: false, plan: false, ...change };
}

export async function granted(world: TenantWorld, order: GrantOrder): Promise<number> {
  const reply = await world.task("allocation.grant_user", order);
  if (!reply.ok) throw new Error(reply.message);
  return reply.result.uid ?? 0;
}
