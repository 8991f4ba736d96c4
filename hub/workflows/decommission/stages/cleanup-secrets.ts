import { failure } from "../../../../shared/failures.ts";
import { lastMachineOf } from "../../../db/queries/node-machines.ts";
import { disableOverrides, type HostOverride, overridesOfSite } from "../../../db/queries/power-overrides.ts";
import { sameAddress } from "../../../maas/power-address.ts";
import { SECRET_PATHS, SecretError } from "../../../secrets/port.ts";
import type { Observation, Outcome } from "../../engine/stage.ts";
import { inFencedTx, UPSTREAM_RETRY } from "../../services.ts";
import type { DecommissionContext, DecommissionStageOf, DecommissionState } from "../decommission-context.ts";

/** How long the stage waits for an unavailable secret store before a person has to look at it. */
const SECONDS = 3_600;

/** The BMC logins that operators wrote for this host alone, without the site's default login and the logins of other hosts. */
async function ownLogins({ node, decommission, services }: DecommissionContext): Promise<HostOverride[]> {
  const { siteId, hostname } = decommission;
  const machine = await lastMachineOf(services.db, node.id);
  if (siteId === null || machine === null) return [];
  const values = { hostname, ipmi_ip: machine.ipmiIp, pxe_mac: machine.pxeMac };
  const rows = await overridesOfSite(services.db, siteId);
  return rows.filter(({ selectorType, selectorValue }) => {
    const value = values[selectorType];
    return value !== null && sameAddress(selectorValue, value);
  });
}

async function isThere({ services }: DecommissionContext, path: string): Promise<boolean> {
  try {
    await services.secrets.read(path);
    return true;
  } catch (error) {
    if (error instanceof SecretError && error.code === "secret_missing") return false;
    // A secret that exists but cannot be read counts as present, so that the stage removes it.
    if (error instanceof SecretError && error.code === "secret_corrupt") return true;
    throw error;
  }
}

async function look(context: DecommissionContext): Promise<Observation<DecommissionState>> {
  const logins = await ownLogins(context);
  if (logins.some(({ status }) => status === "active")) return { kind: "not_started" };
  for (const path of [SECRET_PATHS.userData(context.node.id), ...logins.map(({ vaultPath }) => vaultPath)])
    if (await isThere(context, path)) return { kind: "not_started" };
  return { kind: "done", message: "The secret store has no secret of this node" };
}

async function run(context: DecommissionContext): Promise<Outcome<DecommissionState>> {
  const logins = await ownLogins(context);
  // The logins are disabled before their secrets are removed, so that no onboarding uses a login without a secret.
  await inFencedTx(context, (tx) =>
    disableOverrides(
      tx,
      logins.map(({ id }) => id),
    ),
  );
  for (const path of [SECRET_PATHS.userData(context.node.id), ...logins.map(({ vaultPath }) => vaultPath)])
    await context.services.secrets.remove(path);
  const own = logins.length === 0 ? "no BMC login was written for this host alone" : `${logins.length} BMC logins`;
  return { kind: "done", message: `The node's secrets are removed: its user-data, and ${own}` };
}

/**
 * Removes the node's secrets from the secret store (lifecycle 5.4): its user-data, and the BMC logins that operators wrote for this host alone. The
 * site's secrets and the secrets of other hosts stay.
 */
export const cleanupSecrets: DecommissionStageOf<"cleanup_secrets"> = {
  name: "cleanup_secrets",
  title: "Remove the node's secrets from the secret store",
  reentry: { rule: "observe_first", observe: look },
  timeout: {
    seconds: () => SECONDS,
    failure: ({ node }) =>
      failure(
        "upstream_transient",
        "secret_store_timeout",
        `The secrets of node ${node.hostname} were not removed within ${SECONDS} s.`,
        { node_id: node.id, timeout_seconds: SECONDS },
      ),
  },
  retry: UPSTREAM_RETRY,
  run,
};
