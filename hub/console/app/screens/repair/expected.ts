import { everyValue } from "../../api/every-value.ts";
import type { Tone } from "../../parts/tones.ts";
import type { Repair } from "./repair-questions.ts";

/** The next step that is expected in a repair case, and who takes it. */
export interface Expected {
  readonly tone: Tone;
  readonly title: string;
  readonly next: string;
}

type Held = NonNullable<Repair["held_back"]>;
const HELD: Readonly<Record<Held, string>> = {
  breaker:
    "Too many machines of the site are in repair at once, so the report asked for no repair. Look for a common cause, such as a switch or a driver, reset the breaker on the screen of the site, and request the repair.",
  attempts_spent:
    "The machine has had all its attempts within 30 days. Escalate the repair, or have an admin raise the limit of the site.",
  no_new_evidence:
    "There was an attempt at the machine already, and the report says nothing that the attempt did not know. Request the repair with new evidence, or escalate it.",
};

/** The risks of an online repair that the tenant has accepted, in words. */
export const RISKS: Readonly<Record<string, string>> = {
  accept_data_corruption_risk: "data of the tenant may be damaged",
  accept_repair_team_access: "the repair team may have access to the machine",
  accept_instance_deletion_risk: "the instance may have to be deleted",
};

type Open = Exclude<Repair["state"], "closed" | "abandoned">;
const OPEN: ReadonlySet<string> = new Set(
  everyValue<Open>({ reported: true, requested: true, claimed: true, repaired: true, failed: true, escalated: true }),
);
const isOpen = (state: Repair["state"]): state is Open => OPEN.has(state);

const EXPECTED: Readonly<Record<Open, (one: Repair) => Expected>> = {
  reported: ({ held_back: held }) => ({
    tone: "attention",
    title: held === null ? "Nobody has asked for the repair yet" : "The report asked for no repair by itself",
    next:
      held === null ? "Request the repair, so that a repair team may claim the machine, or escalate it." : HELD[held],
  }),
  requested: () => ({
    tone: "busy",
    title: "The repair waits for a claim",
    next: "A repair team or a person claims the machine. Withdraw the request, or escalate it, if nobody does.",
  }),
  claimed: ({ claimed_by: by }) => ({
    tone: "busy",
    title: `${by ?? "Somebody"} repairs the machine`,
    next: "Who has claimed the machine reports the outcome, or extends the claim. A claim that ends without a report counts as a failed attempt.",
  }),
  repaired: ({ failed_checks: checks }) => ({
    tone: checks.length === 0 ? "good" : "attention",
    title: checks.length === 0 ? "The machine has passed all checks" : "The machine is said to be repaired",
    next:
      checks.length === 0
        ? "Close the repair. The machine may then take a tenant again."
        : "It leaves its repair after these checks:",
  }),
  failed: ({ outcome }) => ({
    tone: "bad",
    title: outcome === null ? "The repair has failed" : `The last attempt ended as ${outcome.replaceAll("_", " ")}`,
    next: "Request the repair with new evidence, or escalate it. An operator reports a machine as completed that was repaired by hand.",
  }),
  escalated: () => ({
    tone: "bad",
    title: "A person of the provider must look at the machine",
    next: "Report the repair as completed when the machine is sound, or request the repair again.",
  }),
};

/** Returns the next step that is expected in a repair case; null for an ended case. */
export const expectedOf = (one: Repair): Expected | null => (isOpen(one.state) ? EXPECTED[one.state](one) : null);
