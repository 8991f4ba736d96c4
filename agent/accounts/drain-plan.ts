import type { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import type { DRAIN_STEPS } from "../../shared/tasks/drain.ts";
import type { System } from "../system/system.ts";
import { runningOf } from "./end-processes.ts";
import { isHuman } from "./human-uid.ts";
import { type LoginSession, readAllSessions, usersOf } from "./login-sessions.ts";
import { cleaningStep, namesIn } from "./step.ts";
import { holdsTerminalOf } from "./terminals.ts";

type Step = CleaningStep & { readonly step: (typeof DRAIN_STEPS)[number] };

const LINGER_FOLDER = "/var/lib/systemd/linger";

export interface DrainPlan {
  readonly users: readonly string[];
  readonly steps: Step[];
}

/** The present state of the host's logins: null if the host is open for logins, and otherwise who closed it. */
export type ClosedBy = "drain" | "other" | null;

/** Says what a drain of the host would do at this moment, and changes nothing. */
export async function planDrain(
  system: System,
  order: { readonly force: boolean; readonly deadline_seconds: number },
  closedBy: ClosedBy,
): Promise<DrainPlan> {
  const sessions = await readAllSessions(system);
  const listed = sessions.filter(({ id }) => id !== null);
  // Only a drain with `force` waits for terminals without a login session.
  const users = usersOf(order.force ? sessions : listed);
  const step = (name: Step["step"], message: string, evidence: Step["evidence"] = {}): Step =>
    cleaningStep(name, "host", "planned", message, evidence);
  const steps = [
    step("logins", LOGINS[closedBy ?? "nobody"], { closed_by: closedBy }),
    step("sessions", sessionsText(users, order), {
      sessions: listed.length,
      users: users.length,
      // A drain without force fails at its deadline if a user stays logged in.
      needs_force: listed.length > 0,
      would_end: order.force ? listed.flatMap(({ id }) => id ?? []).join(" ") : "",
    }),
    await terminalsStep(system, order.force, step),
    await servicesStep(system, listed, step),
  ];
  return { users, steps };
}

const LOGINS: Record<NonNullable<ClosedBy> | "nobody", string> = {
  nobody: "New logins would be prevented; root could still log in.",
  drain: "An earlier drain prevents new logins already.",
  other: "The file /etc/nologin of another program prevents new logins already, and would stay.",
};

function sessionsText(users: readonly string[], order: { force: boolean; deadline_seconds: number }): string {
  if (users.length === 0) return "No user is logged in, so the drain would end at once.";
  const wait = `The drain would wait ${order.deadline_seconds} s for ${namesIn(users)} to log out`;
  return order.force
    ? `${wait}, and then end the sessions that are left.`
    : `${wait}. It would end no session, and fail if one is left, because the order has no force.`;
}

type StepOf = (name: Step["step"], message: string, evidence?: Step["evidence"]) => Step;

async function terminalsStep(system: System, force: boolean, step: StepOf): Promise<Step> {
  const held = await runningOf(system.processes, holdsTerminalOf(isHuman));
  const names = namesIn(held.map(({ comm, pid }) => `${comm} (${pid})`)) || "none";
  const message = force
    ? `These processes on terminals would be ended at the deadline: ${names}.`
    : `No process would be ended. These run on terminals of users: ${names}.`;
  return step("terminals", message, { processes: held.length, would_end: force ? held.length : 0 });
}

/** A drain stops no service itself. After a user's last session, systemd stops the user's services, unless lingering is on for the user. */
async function servicesStep(system: System, listed: readonly LoginSession[], step: StepOf): Promise<Step> {
  const users = [...new Map(listed.map((one) => [one.uid, one])).values()];
  const lingers = await Promise.all(users.map(({ user }) => system.isPresent(`${LINGER_FOLDER}/${user}`)));
  const units = (which: boolean): string[] =>
    users.flatMap(({ uid }, index) => (lingers[index] === which ? [`user@${uid}.service`] : []));
  const [ending, staying] = [units(false), units(true)];
  const message =
    ending.length === 0
      ? "No service would end."
      : `The drain stops no service. systemd would end these after the last session of their user: ${namesIn(ending)}.`;
  return step("services", message, { ends_with_session: ending.join(" "), stays: staying.join(" ") });
}
