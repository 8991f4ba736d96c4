import { classOf, NOT_OBSERVED } from "../../shared/condition-types.ts";
import type { HealthType, Judged } from "./judged.ts";

/** A condition as the agent reports it (`shown`), and what later checks found if they contradict it (`other`). */
export interface Damped {
  readonly shown: Judged;
  /** How many of the newest checks in a row had the same result, which contradicts the reported condition `shown`. */
  readonly other: { readonly kind: string; readonly looks: number } | null;
}

/** A measured value may exceed its bound for a moment, so the agent reports a warning only when `LOOKS_TO_CHANGE` checks in a row agree. */
const LOOKS_TO_CHANGE = 2;

const kindOf = ({ status, reason }: Judged): string => (reason === NOT_OBSERVED ? reason : status);

/**
 * Returns a health condition of the host after one more check, whose result is `seen`. A condition changes its status only when two checks in a row
 * agree, so that a value at its bound, or one failed read, does not make the condition flap. A fault of a barring condition, which keeps tenants off
 * the host, is reported after its first check, because a tenant must not get a broken host.
 */
export function damp(type: HealthType, before: Damped | null, seen: Judged): Damped {
  if (before === null || kindOf(before.shown) === kindOf(seen)) return { shown: seen, other: null };
  const kind = kindOf(seen);
  const looks = before.other?.kind === kind ? before.other.looks + 1 : 1;
  const needed = seen.status === "False" && classOf(type) === "barring" ? 1 : LOOKS_TO_CHANGE;
  return looks >= needed ? { shown: seen, other: null } : { shown: before.shown, other: { kind, looks } };
}
