import { loginsOfSite, otherHostsOf, type SiteLogin } from "../../db/queries/decommission-secrets.ts";
import { lastMachineOf } from "../../db/queries/node-machines.ts";
import type { ChosenSecret } from "../../db/schema/index.ts";
import type { MaasMachine } from "../../maas/port.ts";
import { SECRET_PATHS, SecretError } from "../../secrets/port.ts";
import type { DecommissionContext } from "./decommission-context.ts";
import { judgeLogin, type KnownHost, looksLike } from "./own-login.ts";
import { maasOf, machineOf } from "./release-machine.ts";

type Services = Pick<DecommissionContext, "services">;

/** Returns the version of the secret, `absent` if the store has no secret at the path, or `unreadable` if the secret is damaged. */
export async function versionAt({ services }: Services, path: string): Promise<string> {
  try {
    return (await services.secrets.readVersion(path)).version;
  } catch (error) {
    if (error instanceof SecretError && error.code === "secret_missing") return "absent";
    if (error instanceof SecretError && error.code === "secret_corrupt") return "unreadable";
    throw error;
  }
}

async function hostOf(context: DecommissionContext, machine: MaasMachine | null): Promise<KnownHost> {
  const { decommission, node, services } = context;
  const onboarded = await lastMachineOf(services.db, node.id);
  if (machine === null) return { hostname: decommission.hostname, onboarded, machine };
  const addresses = await (await maasOf(context)).powerAddresses([machine.systemId]);
  const bmcAddress = addresses.get(machine.systemId) ?? "";
  const { systemId, hostname, macAddresses } = machine;
  return { hostname: decommission.hostname, onboarded, machine: { systemId, hostname, bmcAddress, macAddresses } };
}

async function chosenLogin(context: DecommissionContext, host: KnownHost, row: SiteLogin): Promise<ChosenSecret[]> {
  const { node } = context;
  const version = await versionAt(context, row.vaultPath);
  if (version === "absent" && row.status === "disabled") return [];
  const { siteId } = machineOf(context);
  const verdict = judgeLogin(row, host, await otherHostsOf(context.services.db, { siteId, nodeId: node.id }, row));
  if (verdict.kind === "other") return [];
  const login = { id: row.id, selector: `${row.selectorType} ${row.selectorValue}`, changedAt: row.changedAt };
  const about = { kind: "bmc_login", path: row.vaultPath, login, version } as const;
  return [
    verdict.kind === "own"
      ? { ...about, outcome: "chosen", reason: null }
      : { ...about, outcome: "kept", reason: verdict.reason },
  ];
}

/**
 * Chooses the secrets that a full decommission removes: the user-data of the host's first boot, and BMC logins for this host alone. The result of
 * `choose` contains each BMC login that only looks like a login for this host, with the reason why the hub keeps it.
 */
export async function choose(context: DecommissionContext, machine: MaasMachine | null): Promise<ChosenSecret[]> {
  const { siteId } = machineOf(context);
  const path = SECRET_PATHS.userData(context.node.id);
  const version = await versionAt(context, path);
  const chosen: ChosenSecret[] =
    version === "absent" ? [] : [{ kind: "user_data", path, login: null, version, outcome: "chosen", reason: null }];
  const host = await hostOf(context, machine);
  const rows = await loginsOfSite(context.services.db, siteId, context.decommission.decommissionId);
  for (const row of rows.filter((one) => looksLike(one, host))) chosen.push(...(await chosenLogin(context, host, row)));
  return chosen;
}

export const nameOf = ({ login }: ChosenSecret): string =>
  login === null ? "the user-data of the first boot" : `the BMC login ${login.id} (${login.selector})`;
