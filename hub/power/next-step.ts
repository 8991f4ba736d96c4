import type { PowerError, PowerVerb } from "../../shared/power.ts";

/** The time that the host's system gets to shut down before its power is switched off. */
const SHUTDOWN_SECONDS = 300;
/** The time for which a power cycle leaves the machine off, so that its power supplies lose their charge and every part starts cold. */
const REST_SECONDS = 60;
/** The time after which the hub repeats a power command that the machine has not followed, because MAAS may have lost the command. */
const AGAIN_SECONDS = 120;
const LOOK_SECONDS = 15;
/** A BMC that does not answer is asked less often, because it may lock an account after several refused logins (decision M19). */
const UNKNOWN_LOOK_SECONDS = 60;
/**
 * The pause between two checks of a power action that only waits for the host's agent, because the agent's connection does not wake the power action.
 */
const BOOT_LOOK_SECONDS = 10;

/** The time in seconds within which each kind of power action must end. A GPU host with large memory may need a quarter of an hour to boot. */
export const DEADLINE_SECONDS: Readonly<Record<PowerVerb, number>> = { on: 1800, off: 900, cycle: 2700, reboot: 2700 };

export interface PowerProgress {
  readonly verb: PowerVerb;
  readonly immediate: boolean;
  readonly requestedAt: Date;
  readonly deadlineAt: Date;
  readonly bootId: string | null;
  readonly shutdownAskedAt: Date | null;
  readonly shutdownAcceptedAt: Date | null;
  readonly offAskedAt: Date | null;
  readonly onAskedAt: Date | null;
  readonly offSeenAt: Date | null;
}

/** What the hub sees of the host before it decides the next step of a power action. */
export interface HostSeen {
  /** The power state that MAAS has just read from the BMC, for example `on`, `off`, `unknown` or `error`. */
  readonly power: string;
  /** The open session of the node's agent; null if the agent is away. */
  readonly agent: { readonly bootId: string; readonly lastSeenAt: Date; readonly connectedAt: Date } | null;
  readonly now: Date;
}

export type PowerCommand = "shutdown" | "off" | "on";
export type PowerStep =
  | { readonly kind: "ask"; readonly command: PowerCommand; readonly offSeen: boolean; readonly reason: string }
  | { readonly kind: "wait"; readonly reason: string; readonly seconds: number; readonly offSeen: boolean }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly code: PowerError; readonly message: string };

const isOlder = (at: Date | null, seconds: number, now: Date): boolean =>
  at === null || now.getTime() - at.getTime() >= seconds * 1000;
const wait = (reason: string, seconds = LOOK_SECONDS, offSeen = false): PowerStep => ({
  kind: "wait",
  reason,
  seconds,
  offSeen,
});
const ask = (command: PowerCommand, reason: string, offSeen = false): PowerStep => ({
  kind: "ask",
  command,
  reason,
  offSeen,
});

/**
 * Decides the next step of a power action from its record and from what the hub sees, without any call. A power action repeats a command only after
 * the machine has had time to follow, and ends only by evidence: the BMC's answer `off`, or the host's agent after another boot.
 */
export function nextStep(action: PowerProgress, seen: HostSeen): PowerStep {
  if (isBack(action, seen)) return { kind: "done" };
  if (action.verb === "off" && seen.power === "off") return { kind: "done" };
  if (seen.now >= action.deadlineAt) return tooLate(action, seen);
  if (seen.power !== "on" && seen.power !== "off")
    return wait("The BMC to say whether the machine is on", UNKNOWN_LOOK_SECONDS);
  const mustGoOff = action.verb !== "on" && action.offSeenAt === null;
  if (mustGoOff && seen.power === "on") return switchOff(action, seen.now);
  if (seen.power === "off") return switchOn(action, seen.now);
  return wait("The agent of the host to connect", BOOT_LOOK_SECONDS);
}

/**
 * A machine that is on does not prove a restart: the agent must report another boot id than at the request, or, if that boot id is unknown, must have
 * connected after the command to power on.
 */
function isBack(action: PowerProgress, { agent, power }: HostSeen): boolean {
  const { verb, requestedAt, bootId, shutdownAskedAt, offAskedAt, onAskedAt, offSeenAt } = action;
  if (agent === null || verb === "off" || power === "off") return false;
  const isOtherBoot = bootId !== null && agent.bootId !== bootId;
  if (verb === "on") {
    if (agent.lastSeenAt <= requestedAt) return false;
    const isAfterOn = onAskedAt !== null && agent.connectedAt > onAskedAt;
    return isOtherBoot || isAfterOn || agent.lastSeenAt.getTime() >= mayGoOffUntil(action);
  }
  // A host that came back by itself with another boot id after its shutdown has rebooted, even if the hub never saw it off.
  if (verb === "reboot" && isOtherBoot && (shutdownAskedAt !== null || offAskedAt !== null)) return true;
  if (offSeenAt === null || onAskedAt === null) return false;
  return bootId === null ? agent.connectedAt > onAskedAt : isOtherBoot;
}

/**
 * The time until which a host that is on may still go off by an earlier shutdown or power-off command, which an `on` for a cleaning inherits from the
 * power action that it replaces.
 */
function mayGoOffUntil({ shutdownAskedAt, shutdownAcceptedAt, offAskedAt }: PowerProgress): number {
  const end = (at: Date | null, seconds: number): number => (at === null ? 0 : at.getTime() + seconds * 1000);
  return Math.max(end(shutdownAcceptedAt ?? shutdownAskedAt, SHUTDOWN_SECONDS), end(offAskedAt, AGAIN_SECONDS));
}

function switchOff(action: PowerProgress, now: Date): PowerStep {
  const { verb, immediate, shutdownAskedAt, shutdownAcceptedAt, offAskedAt } = action;
  const isHard = immediate || verb === "cycle";
  // The time for the host's shutdown begins only when MAAS has accepted the shutdown. If MAAS accepts no shutdown, the hub does not cut the power,
  // and the power action fails at its deadline.
  if (!isHard && shutdownAcceptedAt === null)
    return isOlder(shutdownAskedAt, AGAIN_SECONDS, now)
      ? ask("shutdown", "The host's system to shut down")
      : wait("MAAS to accept the shutdown of the host's system");
  if (!isHard && !isOlder(shutdownAcceptedAt, SHUTDOWN_SECONDS, now)) return wait("The host's system to shut down");
  return isOlder(offAskedAt, AGAIN_SECONDS, now)
    ? ask("off", "MAAS to power the machine off")
    : wait("MAAS to power the machine off");
}

function switchOn({ verb, offSeenAt, onAskedAt }: PowerProgress, now: Date): PowerStep {
  if (verb === "cycle" && !isOlder(offSeenAt ?? now, REST_SECONDS, now))
    return wait(`The machine to stay off for ${REST_SECONDS} s`, LOOK_SECONDS, true);
  return isOlder(onAskedAt, AGAIN_SECONDS, now)
    ? ask("on", "MAAS to power the machine on", true)
    : wait("MAAS to power the machine on", LOOK_SECONDS, true);
}

function tooLate(action: PowerProgress, { power }: HostSeen): PowerStep {
  const failed = (code: PowerError, message: string): PowerStep => ({ kind: "failed", code, message });
  if (power !== "on" && power !== "off")
    return failed(
      "power_state_unknown",
      `MAAS could not tell in time whether the machine is on (its answer: '${power}')`,
    );
  const mustBeOn = action.verb === "on" || action.offSeenAt !== null;
  if (mustBeOn && power === "on")
    return failed("agent_unreachable", "The machine is on, but the agent of its host did not connect in time");
  return failed("power_action_failed", `The machine was still ${power} at the deadline`);
}

/** What a person does after a power action has failed with each error code. */
export const AFTER_POWER_ERROR: Readonly<Record<PowerError, string>> = {
  power_action_failed:
    "Check the machine's BMC and MAAS's events about it, then ask again; off and reboot may be asked with immediate.",
  power_state_unknown: "Check the machine's BMC and its power parameters in MAAS, then ask again.",
  agent_unreachable:
    "Look at the host's console: does it boot, does it reach the hub, does muster-agent run? Then ask for a power cycle.",
  machine_not_usable: "Look at the machine in MAAS, and ask again when it is Deployed by Muster's user and unlocked.",
  bmc_login_refused: "Correct the BMC's login in MAAS, then ask again.",
  maas_refused: "Correct what MAAS refused, then ask again.",
};
