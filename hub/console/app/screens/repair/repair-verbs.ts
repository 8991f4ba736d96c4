import type { You } from "../../api/session.ts";
import type { Repair } from "./repair-questions.ts";

export type RepairVerb = "request" | "withdraw" | "claim" | "report" | "escalate" | "validate" | "close";
type Standing = Pick<Repair, "state" | "verbs" | "claimed_by" | "repair_tenant" | "failed_checks">;
type Person = Pick<You, "name" | "role" | "rights">;

/** For each verb of a repair, the name by which the API lists the verb among those that the repair's state allows. */
const NAMES: Readonly<Record<RepairVerb, string>> = {
  request: "request-repair",
  withdraw: "withdraw-repair-request",
  claim: "claim-repair",
  report: "report-repair",
  escalate: "escalate-repair",
  validate: "validate-repair",
  close: "close-repair",
};

/** For each verb of a repair, the message for a state that does not allow the verb. */
const NEEDS: Readonly<Record<RepairVerb, string>> = {
  request: "Only a repair that is reported, failed or escalated can be requested.",
  withdraw: "Only a request that nobody has claimed can be withdrawn.",
  claim: "Only a requested repair can be claimed.",
  report: "Claim the machine first.",
  escalate: "The repair cannot be escalated.",
  validate: "Only a machine that is said to be repaired can be validated.",
  close: "Only a repaired machine leaves its repair.",
};

const isOver = ({ state }: Standing): boolean => state === "closed" || state === "abandoned";

/**
 * Says whether the person may have claimed the repair. A person with the role `repair` may act for a team that claimed the repair; the hub knows the
 * team, but the console does not.
 */
const mayBeClaimant = ({ claimed_by: by }: Standing, { name, role }: Person): boolean =>
  by === name || role === "repair";

const mayOperate = ({ rights }: Person): boolean => rights.includes("operate_nodes");

/** Returns why a verb such as claim cannot apply to the repair case now; null if a person can use it. The hub decides about each request again. */
export function whyNot(verb: RepairVerb, one: Standing, you: Person): string | null {
  if (isOver(one)) return `The repair has ended: it is ${one.state}.`;
  if (verb === "claim" && one.state === "claimed")
    return mayBeClaimant(one, you) ? null : `${one.claimed_by} has claimed the machine, and alone extends the claim.`;
  if (!one.verbs.includes(NAMES[verb])) return `${NEEDS[verb]} The repair is ${one.state}.`;
  if (verb === "report" && !mayOperate(you)) return whyNoReport(one, you);
  if (verb === "close" && one.failed_checks.length > 0)
    return `The machine has not passed all checks: ${one.failed_checks.map(({ message }) => message).join("; ")}.`;
  return null;
}

function whyNoReport(one: Standing, you: Person): string | null {
  if (one.state !== "claimed") return "Only an operator reports a repair that nobody has claimed.";
  return mayBeClaimant(one, you) ? null : `${one.claimed_by} has claimed the machine, and alone reports the attempt.`;
}

const FIRST: Readonly<Partial<Record<Repair["state"], RepairVerb>>> = {
  reported: "request",
  requested: "claim",
  claimed: "report",
  failed: "request",
  escalated: "report",
};

/**
 * Returns the verb that usually comes next in the repair's state. A repaired machine is validated until it passes all checks, and then its repair is
 * closed.
 */
export function firstVerb({
  state,
  failed_checks: checks,
}: Pick<Standing, "state" | "failed_checks">): RepairVerb | null {
  if (state === "repaired") return checks.length === 0 ? "close" : "validate";
  return FIRST[state] ?? null;
}
