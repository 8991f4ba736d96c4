import { ApiError } from "../../shared/api/errors.ts";
import type { SiteId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { eq } from "../db/orm.ts";
import { maasSites, nodeMaasState } from "../db/schema/index.ts";
import type { Db } from "../db/tx.ts";
import type { InputResolvers } from "../gateway/dispatch.ts";
import type { CompareRegion, ProbeMaas, ReadMaasFacts } from "../http/deps.ts";
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

/** The largest number of machines in one request for BMC addresses, because web servers limit the length of the request line. */
const IDS_PER_REQUEST = 500;

export const readMaasFacts =
  (maas: (siteId: SiteId) => Promise<MaasPort>): ReadMaasFacts =>
  async (siteId, systemIds) => {
    const bmcs = new Map<string, string>();
    try {
      const port = await maas(siteId);
      const { username } = await port.whoami();
      for (let at = 0; at < systemIds.length; at += IDS_PER_REQUEST)
        for (const [id, address] of await port.powerAddresses(systemIds.slice(at, at + IDS_PER_REQUEST)))
          bmcs.set(id, address);
      return { username, bmcs };
    } catch (error) {
      if (!(error instanceof MaasError)) throw error;
      const message = `MAAS did not say which BMCs the machines have, so nothing was adopted: ${error.message} Try again.`;
      throw new ApiError("unavailable", message, { cause: error });
    }
  };

/** The requests that the admin API makes to MAAS; none of them changes anything in MAAS. */
export const siteQuestions = (maas: (siteId: SiteId) => Promise<MaasPort>) => ({
  probe: probeSite,
  compareRegion,
  maasFacts: readMaasFacts(maas),
});

/**
 * Adds the secrets to a task's input when the hub offers the task, because the task's row must not hold secrets. The hub reads the machine's token
 * from MAAS for each offer of a task (decision M3).
 */
export const inputResolvers = (db: Db, maas: (siteId: SiteId) => Promise<MaasPort>): InputResolvers => ({
  "node.hw_sync_reseed": async (input, task) => {
    const [binding] = await db
      .select({ siteId: nodeMaasState.siteId })
      .from(nodeMaasState)
      .where(eq(nodeMaasState.nodeId, task.nodeId));
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
