import { forbidden, Refusal } from "../../engine/refusal.ts";
import type { Machine, User } from "../../state/model.ts";
import type { Call } from "../call.ts";

export function mayView(user: User, machine: Machine): boolean {
  return user.isSuperuser || machine.owner === null || machine.owner === user.username;
}

/** Returns the machine that the request's path names. Throws 403 when the caller may not see the machine. */
export function viewable(call: Call): Machine {
  const machine = call.region.machine(call.params[0] ?? "");
  if (!mayView(call.user, machine)) throw forbidden();
  return machine;
}

/** Returns the machine that the request's path names. Throws 403 when the machine is locked or the caller may not change the machine. */
export function editable(call: Call): Machine {
  const machine = viewable(call);
  if (machine.locked) throw forbidden();
  if (!call.user.isSuperuser && machine.owner !== call.user.username) throw forbidden();
  return machine;
}

export function administered(call: Call): Machine {
  const machine = viewable(call);
  if (!call.user.isSuperuser || machine.locked) throw forbidden();
  return machine;
}

/**
 * Returns the machine of a request that reads the machine's secrets or changes the machine's lock. Only administrators may read a machine's secrets
 * or change the machine's lock, even while the machine is locked.
 */
export function adminRead(call: Call): Machine {
  const machine = viewable(call);
  if (!call.user.isSuperuser) throw forbidden();
  return machine;
}

export function requireAdmin(call: Call): void {
  if (!call.user.isSuperuser) throw new Refusal(403, "This method is reserved for admin users.");
}
