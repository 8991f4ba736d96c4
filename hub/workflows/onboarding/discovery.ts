import { type Failure, failure } from "../../../shared/failures.ts";
import type { BmcPort } from "../../bmc/port.ts";
import { nodeWithBmc, otherDiscoveries } from "../../db/queries/discoveries.ts";
import { machinesHeldByOthers } from "../../db/queries/machine-holds.ts";
import type { MaasPort } from "../../maas/port.ts";
import type { EnterAgain, Failed, Undone, Wait } from "../engine/stage.ts";
import { nodeFor, siteFor } from "../names-for-site.ts";
import { mustStillHold } from "../provisioning/context.ts";
import { StageFailure } from "../stage-failure.ts";
import { conflicting, type Powers } from "./candidates.ts";
import type { OnboardContext } from "./context.ts";
import { judgeNewcomers, type Newcomer, nextPowerStep } from "./discovery-rules.ts";
import type { Discovery, OnboardState } from "./onboard-state.ts";
import { powerOf } from "./power-login.ts";

/** MAAS needs minutes to create a machine for a booted host, and each search requests the power addresses of all machines. */
const POLL_SECONDS = 60;
const POWER_SECONDS = 5;

/**
 * In a discovery, the BMC boots the host from the network, and the onboarding takes the machine that MAAS creates for the host (lifecycle 4.16). The
 * hub commits its decision to begin a discovery before it sends the BMC any command. After the decision to begin a discovery, the engine enters the
 * stage anew, so that the stage gets the timeout of a discovery.
 */
export function beginDiscovery(
  { onboarding, now }: OnboardContext,
  powers: Powers,
  why: string,
): EnterAgain<OnboardState> {
  const discovery: Discovery = { why, triggered_at: now.toISOString(), known: [...powers.keys()], seen: {} };
  return {
    kind: "enter_again",
    message: `${why}. ${onboarding.hostname} is booted from the network by its BMC ${onboarding.ipmiIp}, for MAAS to find it`,
    patch: { discovery },
    details: { discovery: "triggered", bmc_address: onboarding.ipmiIp },
  };
}

type Step = { readonly kind: "claim"; readonly systemId: string } | Wait<OnboardState> | Failed<OnboardState>;

/**
 * Makes one observation in a discovery of a host that neither name, BMC nor MAC address has identified. If `act` is false, the hub sends no command
 * to the BMC of the host.
 */
export async function discover(
  maas: MaasPort,
  context: OnboardContext,
  { powers, act }: { readonly powers: Powers; readonly act: boolean },
): Promise<Step> {
  const { discovery } = context.state;
  if (discovery === null || discovery === undefined) throw new Error("no discovery has begun");
  // A machine that appears in MAAS before the host's own boot is another host, so a discovery searches for machines only after the boot.
  if (!hasBooted(discovery)) return bootFirst(context, discovery, { powers, act });
  const newcomers = await newcomersOf(maas, context, { powers, discovery });
  const rivals = newcomers.length === 0 ? [] : await rivalsOf(context, discovery);
  const verdict = judgeNewcomers(newcomers, rivals.length);
  const wait = (reason: string, patch: Partial<OnboardState> = {}): Wait<OnboardState> => ({
    kind: "wait",
    reason,
    seconds: POLL_SECONDS,
    patch: { discovery: { ...discovery, seen: seenIn(newcomers, context.now) }, ...patch },
  });
  switch (verdict.kind) {
    case "claim":
      return verdict;
    case "ambiguous": {
      const told = verdict.newcomers.map(
        ({ systemId, status, bmc }) =>
          [systemId, [status === null ? "cannot be read" : "new since its boot", `BMC ${bmc || "unknown"}`]] as const,
      );
      return { kind: "failed", failure: conflicting(context.onboarding, told) };
    }
    case "settling":
      return wait(`MAAS to find out the BMC of new machines: ${verdict.systemIds.join(", ")}`);
    case "shared":
      return wait(
        `MAAS to find out the BMC of ${verdict.systemId}, which may also be ${rivals.map(({ hostname }) => hostname).join(", ")}`,
      );
    case "nothing_yet":
      if (isBootedNow(context) || !act)
        return wait(`${context.onboarding.hostname} to appear in MAAS after its network boot`);
      return stepOf(discovery, await powerStep(context));
  }
}

const hasBooted = ({ booted_at: bootedAt }: Discovery): boolean => bootedAt !== null && bootedAt !== undefined;
/** After an operator's resume, the hub boots the host once more if no new machine has appeared in MAAS. */
const isBootedNow = ({ state }: OnboardContext): boolean => (state.discovery_power?.booted_at ?? null) !== null;

/** Machines that appear in MAAS before the host is off come from other hosts, e.g. while a person repairs the host's BMC. */
async function bootFirst(
  context: OnboardContext,
  discovery: Discovery,
  { powers, act }: { readonly powers: Powers; readonly act: boolean },
): Promise<Wait<OnboardState>> {
  if (!act)
    return { kind: "wait", reason: `${context.onboarding.hostname} to boot from the network`, seconds: POWER_SECONDS };
  const wasOff = discovery.off_at !== null && discovery.off_at !== undefined;
  return stepOf(wasOff ? discovery : { ...discovery, known: [...powers.keys()] }, await powerStep(context));
}

/**
 * Returns the stage's wait after a step of the host's power cycle, with the facts about the host's power that the workflow keeps. After an operator's
 * resume, `off_at` is still the time of the host's first power-off, and `booted_at` is the time of the earlier boot until the host boots again.
 */
function stepOf(discovery: Discovery, { reason, seconds, power }: PowerWait): Wait<OnboardState> {
  if (power === undefined) return { kind: "wait", reason, seconds, patch: { discovery } };
  const lasting = {
    off_at: discovery.off_at ?? power.at,
    booted_at: power.booted_at ?? discovery.booted_at ?? null,
  };
  const discovery_power = { off_seen: true, booted_at: power.booted_at };
  return { kind: "wait", reason, seconds, patch: { discovery: { ...discovery, ...lasting }, discovery_power } };
}

async function newcomersOf(
  maas: MaasPort,
  { services: { db }, workflowId, site, now }: OnboardContext,
  { powers, discovery }: { readonly powers: Powers; readonly discovery: Discovery },
): Promise<Newcomer[]> {
  const known = new Set(discovery.known);
  const ids = [...powers.keys()].filter((systemId) => !known.has(systemId));
  if (ids.length === 0) return [];
  const held = await machinesHeldByOthers(db, workflowId, site.id);
  const free = ids.filter((systemId) => !held.has(systemId));
  const { machines, unreadable } = await maas.readMachines(free);
  const status = new Map<string, number | null>(machines.map((machine) => [machine.systemId, machine.status]));
  for (const { systemId } of unreadable) if (systemId !== null) status.set(systemId, null);
  return [...status].map(([systemId, code]) => ({
    systemId,
    status: code,
    bmc: powers.get(systemId) ?? "",
    seenSeconds: (now.getTime() - Date.parse(discovery.seen[systemId] ?? now.toISOString())) / 1000,
  }));
}

const seenIn = (newcomers: readonly Newcomer[], now: Date): Discovery["seen"] =>
  Object.fromEntries(
    newcomers.map(({ systemId, seenSeconds }) => [
      systemId,
      new Date(now.getTime() - seenSeconds * 1000).toISOString(),
    ]),
  );

/** Another onboarding counts as a rival for new machines from the start of its own discovery, for as long as a discovery may take. */
function rivalsOf({ services, workflowId, site, profile }: OnboardContext, { triggered_at }: Discovery) {
  const since = new Date(Date.parse(triggered_at) - profile.discoveryTimeoutSeconds * 1000);
  return otherDiscoveries(services.db, { id: workflowId, siteId: site.id, since });
}

interface PowerWait {
  readonly reason: string;
  readonly seconds: number;
  /** The last observation of the host's power, made at the time `at`. The time `booted_at` of a host's boot is null while the host is off. */
  readonly power?: { readonly at: string; readonly booted_at: string | null };
}

async function powerStep(context: OnboardContext): Promise<PowerWait> {
  const { services, state, onboarding, now } = context;
  await mustBeNobodys(context);
  const { driver = "ipmi", ...login } = await powerOf(context);
  const bmc = services.bmc({ driver, ...login }, context.signal);
  const offSeen = state.discovery_power?.off_seen === true;
  const host = `${onboarding.hostname} (BMC ${onboarding.ipmiIp})`;
  const at = now.toISOString();
  switch (nextPowerStep({ offSeen, power: await bmc.power() })) {
    case "wait":
      return { reason: `The power state of ${host} to stop changing`, seconds: POWER_SECONDS };
    case "switch_off":
      await mustStillHold(context);
      await bmc.powerOff();
      return { reason: `${host} to power off`, seconds: POWER_SECONDS };
    case "note_off":
      return { reason: `${host} to boot from the network`, seconds: 0, power: { at, booted_at: null } };
    case "boot":
      await mustStillHold(context);
      await boot(bmc);
      return { reason: `${host} to boot from the network`, seconds: POWER_SECONDS };
    case "booted":
      return {
        reason: `${onboarding.hostname} to appear in MAAS after its network boot`,
        seconds: POLL_SECONDS,
        power: { at, booted_at: at },
      };
  }
}

async function boot(bmc: BmcPort): Promise<void> {
  await bmc.bootFromNetworkOnce();
  await bmc.powerOn();
}

/**
 * Throws if another node uses the BMC of the requested host. The stage `create_or_find_in_maas` has already checked that no machine of the site's
 * MAAS uses the BMC. A node of another site, or a node without a machine in MAAS, may still use the BMC of the requested host. The hub must never
 * switch off the host of another node.
 */
async function mustBeNobodys({ services, onboarding, site }: OnboardContext): Promise<void> {
  const { nodeId, ipmiIp, hostname } = onboarding;
  const other = await nodeWithBmc(services.db, { nodeId, ipmiIp });
  if (other === null) return;
  const message = `BMC ${ipmiIp} belongs to ${nodeFor(site, other)} of ${siteFor(site, other)}, which is ${other.status}, so ${hostname} is not power-cycled. Drain and remove that node, then resume; or cancel and correct the request.`;
  const evidence = { node_id: other.id, node_status: other.status, bmc_address: ipmiIp };
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, evidence));
}

/**
 * Tells the operator about a host that a discovery switched off or booted although the onboarding took no machine for the host. If a discovery has
 * found a machine, the compensations of the later stages undo what those stages did to the machine.
 */
export function leaveDiscovered({ state, onboarding }: OnboardContext): Undone<OnboardState> {
  const { discovery } = state;
  if (discovery === null || discovery === undefined || !discovery.off_at)
    return { kind: "skipped", message: "No host was booted for MAAS to find it" };
  const { hostname, ipmiIp } = onboarding;
  const made = hasBooted(discovery) ? `was booted from the network at ${discovery.booted_at}` : "was switched off";
  const message = `${hostname} ${made} by its BMC ${ipmiIp} so that MAAS would find it. The onboarding claimed no machine for it and left the host as it is.`;
  return {
    kind: "skipped",
    message,
    leaves: {
      message,
      nextAction: `Check in MAAS whether a machine has appeared for ${hostname}, and remove the machine if you do not want it. Power the host off if it should be off.`,
      evidence: { bmc_address: ipmiIp, off_at: discovery.off_at, network_boot_at: discovery.booted_at ?? null },
    },
  };
}

/** The failure after a discovery's timeout says what the discovery did and with what result. */
export function discoveryTimeout(context: OnboardContext): Failure {
  const { profile, state, onboarding } = context;
  const { discovery } = state;
  const seconds = profile.discoveryTimeoutSeconds;
  const evidence = {
    timeout_seconds: seconds,
    timeout_knob: "discoveryTimeoutSeconds",
    hostname: onboarding.hostname,
    maas_system_id: state.maas_system_id ?? null,
  };
  if (discovery === null || discovery === undefined) {
    const message = `Finding the machine took longer than the profile allows (${seconds} s).`;
    return failure("pxe_discovery_failure", "discovery_timeout", message, evidence);
  }
  const seen = Object.keys(discovery.seen);
  const more = {
    ...evidence,
    bmc_address: onboarding.ipmiIp,
    discovery_because: discovery.why,
    network_boot_at: discovery.booted_at ?? null,
    new_machines: seen.slice(0, 20),
  };
  if (!hasBooted(discovery)) {
    const message = `${onboarding.hostname} could not be power-cycled by its BMC ${onboarding.ipmiIp} within ${seconds} s: it was ${discovery.off_at ? "powered off, and did not power on again" : "never seen powered off"}.`;
    return failure("bmc_power_failure", "power_action_failed", message, more);
  }
  const met =
    seen.length === 0
      ? "no new machine appeared in MAAS"
      : `of the new machines in MAAS (${seen.slice(0, 20).join(", ")}) none is known to be this host. Give this host's machine its BMC address in MAAS`;
  const message = `${onboarding.hostname} was booted from the network by its BMC ${onboarding.ipmiIp}, and within ${seconds} s ${met}.`;
  return failure("pxe_discovery_failure", "discovery_timeout", message, more);
}
