import { isIP } from "node:net";
import { MAAS_STATUS } from "../../../../shared/maas-status.ts";
import { machinesHeldByOthers } from "../../../db/queries/machine-holds.ts";
import { MaasError, type MaasPort } from "../../../maas/port.ts";
import type { Done, Failed, Observation, Outcome, Wait } from "../../engine/stage.ts";
import { maasOf } from "../../provisioning/context.ts";
import { takeMachine } from "../../provisioning/take-machine.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import { choose, conflicting, findCandidates, type Powers } from "../candidates.ts";
import type { OnboardContext, OnboardStage } from "../context.ts";
import { beginDiscovery, discover, discoveryTimeout, leaveDiscovered } from "../discovery.ts";
import { afterCreate } from "../discovery-rules.ts";
import { leftByRemovedNode } from "../left-by-removed-node.ts";
import type { OnboardState } from "../onboard-state.ts";
import { powerOf } from "../power-login.ts";

/**
 * Searches MAAS for the host's machine, and creates a machine only if the search finds none. A second run of `create_or_find_in_maas` adopts the
 * machine that an earlier run created or booted, even if MAAS's answer was lost (lifecycle 4.10, 4.16). After its deadline, `create_or_find_in_maas`
 * only searches for the machine one last time.
 */
export const createOrFindInMaas: OnboardStage<"create_or_find_in_maas"> = {
  name: "create_or_find_in_maas",
  title: "Find the machine in MAAS by name, BMC address or MAC, create it, or boot the host for MAAS to find it",
  reentry: { rule: "observe_first", observe },
  timeout: { seconds: ({ profile }) => profile.discoveryTimeoutSeconds, failure: discoveryTimeout },
  retry: UPSTREAM_RETRY,
  async run(context) {
    const { maas, powers, found } = await lookUp(context);
    if (found !== null) return found;
    if (hasBegun(context)) return discovered(maas, context, { powers, act: true });
    return (await claimSoleNew(maas, context, powers)) ?? create(maas, context, powers);
  },
  compensate: async (context) => leaveDiscovered(context),
};

const hasBegun = ({ state }: OnboardContext): boolean => state.discovery !== null && state.discovery !== undefined;

async function observe(context: OnboardContext): Promise<Observation<OnboardState>> {
  if (context.now < context.deadline) return { kind: "not_started" };
  const { maas, powers, found } = await lookUp(context);
  if (found !== null) return found;
  return hasBegun(context) ? discovered(maas, context, { powers, act: false }) : { kind: "not_started" };
}

interface LookedUp {
  readonly maas: MaasPort;
  readonly powers: Powers;
  readonly found: Done<OnboardState> | Failed<OnboardState> | null;
}

async function lookUp(context: OnboardContext): Promise<LookedUp> {
  const maas = await maasOf(context);
  const known = context.state.maas_system_id;
  if (typeof known === "string" && (await maas.readMachine(known)) !== null) {
    const powers = await maas.powerAddresses([known]);
    return { maas, powers, found: adopt(context, known, powers, "as before") };
  }
  const powers = await maas.powerAddresses();
  const choice = choose(await findCandidates(maas, context.onboarding, powers));
  if (choice.kind === "ambiguous")
    return { maas, powers, found: { kind: "failed", failure: conflicting(context.onboarding, choice.told) } };
  if (choice.kind === "none") return { maas, powers, found: null };
  const left = await leftByRemovedNode(maas, context, choice.systemId);
  const found = left ?? adopt(context, choice.systemId, powers, `by ${choice.by.join(" and ")}`);
  return { maas, powers, found };
}

async function discovered(
  maas: MaasPort,
  context: OnboardContext,
  how: { readonly powers: Powers; readonly act: boolean },
): Promise<Done<OnboardState> | Wait<OnboardState> | Failed<OnboardState>> {
  const step = await discover(maas, context, how);
  if (step.kind !== "claim") return step;
  return adopt(context, step.systemId, how.powers, "as the only one that is new since its network boot");
}

function adopt(
  context: OnboardContext,
  systemId: string,
  powers: Powers,
  how: string,
  created = false,
): Done<OnboardState> {
  return {
    kind: "done",
    message: `${created ? "Created" : "Found"} machine ${systemId} ${how}`,
    patch: {
      maas_system_id: systemId,
      machine_created: created || context.state.machine_created === true,
      ...(hasBegun(context) ? { discovery: null, discovery_power: null } : {}),
    },
    details: { maas_system_id: systemId },
    commit: (tx) => takeMachine(tx, context, { systemId, bmc: powers.get(systemId) ?? "" }),
  };
}

/**
 * Takes a New machine that MAAS discovered by itself, if the profile allows machines that nobody requested (lifecycle 4.16, rule 6). A machine with
 * another BMC address is another host, whose BMC the onboarding would overwrite in MAAS. If MAAS knows the machine's BMC only by a name, a person
 * must decide whether the machine belongs to the requested host.
 */
async function claimSoleNew(
  maas: MaasPort,
  context: OnboardContext,
  powers: Powers,
): Promise<Outcome<OnboardState> | null> {
  if (!context.profile.autoClaimSingleNewMachine) return null;
  const held = await machinesHeldByOthers(context.services.db, context.workflowId, context.site.id);
  const bmcOf = (systemId: string): string => powers.get(systemId) ?? "";
  const { machines, unreadable } = await maas.listMachines();
  const fresh = machines.filter(
    ({ status, systemId }) => status === MAAS_STATUS.new && !held.has(systemId) && isIP(bmcOf(systemId)) === 0,
  );
  const [sole, ...others] = fresh;
  if (sole === undefined) return null;
  const bmc = bmcOf(sole.systemId);
  if (others.length === 0 && unreadable.length === 0 && bmc === "")
    return adopt(
      context,
      sole.systemId,
      powers,
      "as the only New machine without a known BMC, which the profile allows to claim",
    );
  const how = (systemId: string): string => `status New, BMC ${bmcOf(systemId) || "unknown"}`;
  const unknown = unreadable.map(({ systemId, problem }) => [systemId ?? "?", [`cannot be read: ${problem}`]] as const);
  const told = [...fresh.map(({ systemId }) => [systemId, [how(systemId)]] as const), ...unknown];
  return { kind: "failed", failure: conflicting(context.onboarding, told) };
}

/**
 * The create request names an architecture and does not commission, because otherwise MAAS silently drops some of the request's options (maas 2.2).
 */
async function create(maas: MaasPort, context: OnboardContext, powers: Powers): Promise<Outcome<OnboardState>> {
  try {
    const machine = await maas.createMachine({
      hostname: context.onboarding.hostname,
      architecture: context.profile.architecture,
      power: await powerOf(context),
    });
    const power = new Map([[machine.systemId, context.onboarding.ipmiIp]]);
    return adopt(context, machine.systemId, power, "with its BMC", true);
  } catch (error) {
    if (!(error instanceof MaasError)) throw error;
    return goOn(context, powers, error);
  }
}

function goOn(context: OnboardContext, powers: Powers, error: MaasError): Outcome<OnboardState> {
  const { create_rejections, create_unusable } = context.state;
  const nameRefusals = create_rejections ?? 0;
  const unusable = create_unusable ?? 0;
  const fields = Object.keys(error.fieldErrors);
  const { code, httpStatus } = error;
  switch (afterCreate({ code, httpStatus, fields, nameRefusals, unusable })) {
    case "give_up":
      throw error;
    case "look_again":
      return code === "rejected_input"
        ? {
            kind: "wait",
            reason: "The machine to appear in MAAS, which refuses to create another one of that name",
            seconds: 2,
            patch: { create_rejections: nameRefusals + 1 },
          }
        : {
            kind: "wait",
            reason: "The machine to appear in MAAS, which accepted the create request but returned no machine",
            seconds: 10,
            patch: { create_unusable: unusable + 1 },
          };
    case "discover": {
      const why =
        code === "rejected_input"
          ? `MAAS refuses to create the machine (${fields.slice(0, 5).join(", ")})`
          : `MAAS accepted ${unusable + 1} requests to create the machine, but created none`;
      return beginDiscovery(context, powers, why);
    }
  }
}
