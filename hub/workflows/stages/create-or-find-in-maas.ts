import { isIP } from "node:net";
import { machinesHeldByOthers } from "../../db/queries/machine-holds.ts";
import { MaasError, type MaasPort } from "../../maas/port.ts";
import { choose, conflicting, findCandidates, type Powers } from "../candidates.ts";
import { maasOf, type OnboardContext, type OnboardStage, profileTimeout, UPSTREAM_RETRY } from "../context.ts";
import type { Done, Outcome, Wait } from "../engine/stage.ts";
import type { OnboardState } from "../onboard-state.ts";
import { powerOf } from "../power-login.ts";
import { takeMachine } from "../take-machine.ts";

const NEW = 0;
/** MAAS refused to create what the lookup did not find: somebody was faster. Looking again finds it; not for ever. */
const MOST_REJECTIONS = 3;

/** Lookup first, so that running it again adopts what an earlier run created without having heard the answer (lifecycle 4.10, 4.16). */
export const createOrFindInMaas: OnboardStage = {
  name: "create_or_find_in_maas",
  title: "Find the machine in MAAS by name, BMC address or MAC, or create it",
  reentry: { rule: "from_top" },
  timeout: profileTimeout(
    "discoveryTimeoutSeconds",
    "pxe_discovery_failure",
    "discovery_timeout",
    "Finding the machine",
  ),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const maas = await maasOf(context);
    const known = context.state.maas_system_id;
    if (typeof known === "string" && (await maas.readMachine(known)) !== null)
      return adopt(context, known, await maas.powerAddresses([known]), "as before");
    const powers = await maas.powerAddresses();
    const choice = choose(await findCandidates(maas, context.onboarding, powers));
    if (choice.kind === "ambiguous") return { kind: "failed", failure: conflicting(context.onboarding, choice.told) };
    if (choice.kind === "one") return adopt(context, choice.systemId, powers, `by ${choice.by.join(" and ")}`);
    return (await claimSoleNew(maas, context, powers)) ?? create(maas, context);
  },
};

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
    patch: { maas_system_id: systemId, machine_created: created || context.state.machine_created === true },
    details: { maas_system_id: systemId },
    commit: (tx) => takeMachine(tx, context, { systemId, bmc: powers.get(systemId) ?? "" }),
  };
}

/**
 * Only where the site's profile allows it: a machine that MAAS discovered by itself and nobody asked for (lifecycle 4.16, 6). One that MAAS
 * knows by another BMC address is another host: claiming it would write this host's BMC over the other's. A BMC that MAAS knows by a name,
 * not an address, may be either, so nobody chooses.
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
    ({ status, systemId }) => status === NEW && !held.has(systemId) && isIP(bmcOf(systemId)) === 0,
  );
  const [sole, ...others] = fresh;
  if (sole === undefined) return null;
  const bmc = bmcOf(sole.systemId);
  if (others.length === 0 && unreadable.length === 0 && bmc === "")
    return adopt(
      context,
      sole.systemId,
      powers,
      "as the only new one of unknown BMC, which the profile allows to claim",
    );
  const how = (systemId: string): string => `status New, BMC ${bmcOf(systemId) || "unknown"}`;
  const unknown = unreadable.map(({ systemId, problem }) => [systemId ?? "?", [`cannot be read: ${problem}`]] as const);
  const told = [...fresh.map(({ systemId }) => [systemId, [how(systemId)]] as const), ...unknown];
  return { kind: "failed", failure: conflicting(context.onboarding, told) };
}

/** With an architecture and without commissioning: what MAAS does otherwise loses options (contract 2.2). */
async function create(maas: MaasPort, context: OnboardContext): Promise<Outcome<OnboardState>> {
  try {
    const machine = await maas.createMachine({
      hostname: context.onboarding.hostname,
      architecture: context.profile.architecture,
      power: await powerOf(context),
    });
    const power = new Map([[machine.systemId, context.onboarding.ipmiIp]]);
    return adopt(context, machine.systemId, power, "with its BMC", true);
  } catch (error) {
    const again = lookAgain(context, error);
    if (again === null) throw error;
    return again;
  }
}

function lookAgain({ state }: OnboardContext, error: unknown): Wait<OnboardState> | null {
  if (!(error instanceof MaasError)) return null;
  const rejections = (state.create_rejections ?? 0) + 1;
  const nameTaken = error.code === "rejected_input" && "hostname" in error.fieldErrors;
  if (!nameTaken || rejections > MOST_REJECTIONS) return null;
  const reason = "Another program created the machine at the same moment";
  return { kind: "wait", reason, seconds: 2, patch: { create_rejections: rejections } };
}
