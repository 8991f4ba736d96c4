import type { SiteId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { eq } from "../db/orm.ts";
import { maasSites, nodeOnboardings } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import type { InputResolvers } from "../gateway/dispatch.ts";
import type { CompareRegion, ProbeMaas } from "../http/deps.ts";
import { createMaasClient } from "../maas/client.ts";
import { MaasError, type MaasPort } from "../maas/port.ts";
import { probeMaas } from "../maas/probe.ts";
import type { SiteClients } from "../maas/site-clients.ts";
import { SecretError, type SecretStore } from "../secrets/port.ts";
import { differencesFrom } from "../watcher/same-region.ts";
import { deployedSeries } from "../workflows/provisioning/distro-series.ts";

/** The hub reads the site's MAAS token for each new client, so a rotated token needs no restart of the hub (lifecycle 3.5). */
export const siteClient =
  (db: Db, secrets: SecretStore, clients: SiteClients) =>
  async (siteId: SiteId, signal?: AbortSignal): Promise<MaasPort> => {
    const [site] = await db
      .select({ baseUrl: maasSites.apiBaseUrl, path: maasSites.apiTokenVaultPath })
      .from(maasSites)
      .where(eq(maasSites.id, siteId));
    if (site === undefined) throw new SecretError("secret_missing", `maas-sites/${siteId}`, "There is no such site");
    if (site.path === null)
      throw new SecretError(
        "secret_missing",
        `maas-sites/${siteId}`,
        "The site has no MAAS token; write its credentials",
      );
    const { token } = await secrets.read(site.path);
    if (token === undefined)
      throw new SecretError(
        "secret_corrupt",
        site.path,
        "The secret holds no token; write the site's credentials again",
      );
    return clients.client({ siteId, baseUrl: site.baseUrl }, new Secret(token), signal);
  };

/** `probeSite` creates a MAAS client of its own, because the token may not be stored yet. */
export const probeSite: ProbeMaas = ({ site, token, profiles }) =>
  probeMaas(createMaasClient({ baseUrl: site.apiBaseUrl, apiKey: token }), {
    upstreamDnsServers: site.upstreamDnsServers,
    profiles: profiles.map((profile) => ({
      name: profile.name,
      series: deployedSeries(profile.distroSeries),
      architecture: profile.architecture,
      pxeIface: profile.pxeIface ?? site.pxeIface,
      pxeVlanVid: profile.pxeVlanVid ?? site.pxeVlanVid,
      scripts: { commissioning: profile.commissioningScripts, testing: profile.testingScripts },
      hardwareSyncSeconds: profile.requireHwSync ? profile.hardwareSyncIntervalSeconds : null,
    })),
  });

/**
 * Compares the MAAS region at an address with the MAAS region from which Muster has read the site's machines. `compareRegion` creates a MAAS client
 * of its own, because the MAAS token for the address may not be stored yet.
 */
export const compareRegion: CompareRegion = ({ address, token, known }) =>
  differencesFrom(known, createMaasClient({ baseUrl: address, apiKey: token })).catch((error: unknown) => {
    if (error instanceof MaasError) return [`it could not be compared: ${error.message}`];
    throw error;
  });

/**
 * Adds the secrets to a task's input when the hub offers the task, because the task's row must not hold secrets. The hub reads the machine's token
 * from MAAS for each offer of a task (decision M3).
 */
export const inputResolvers = (db: Db, maas: (siteId: SiteId) => Promise<MaasPort>): InputResolvers => ({
  "node.hw_sync_reseed": async (input, task) => {
    const [binding] = await db
      .select({ siteId: nodeOnboardings.siteId })
      .from(nodeOnboardings)
      .where(eq(nodeOnboardings.nodeId, task.nodeId))
      .limit(1);
    if (binding === undefined) throw new Error(`node ${task.nodeId} is bound to no site`);
    const token = await (await maas(binding.siteId)).getMachineToken(input.system_id);
    if (token === null) throw new Error(`MAAS has no machine token for ${input.system_id} yet`);
    return {
      ...input,
      machine_token: {
        consumer_key: token.consumerKey,
        token_key: token.tokenKey,
        token_secret: token.tokenSecret.reveal(),
      },
    };
  },
});
