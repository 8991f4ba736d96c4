import { randomUUID } from "node:crypto";
import { and, eq, inArray, or, sql } from "../../hub/db/orm.ts";
import { waitKey, wakeWorkflows } from "../../hub/db/queries/workflow-wakes.ts";
import {
  agentSessions,
  maasRoceAssignments,
  maasSiteProfiles,
  maasSites,
  nodeCertificates,
  nodeConditions,
  nodeOnboardings,
  nodes,
  skus,
  tasks,
} from "../../hub/db/schema/index.ts";
import type { Db } from "../../hub/db/tx.ts";
import { openTaskSigner } from "../../hub/gateway/task-signer.ts";
import { checkAnswers } from "../../hub/gpu-memory/expected-answers.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
import { RequestLimiter } from "../../hub/maas/limiter.ts";
import { SECRET_PATHS } from "../../hub/secrets/port.ts";
import { startOnboarding } from "../../hub/workflows/onboarding/start-onboarding.ts";
import type { FirstBoot, WorkflowServices } from "../../hub/workflows/services.ts";
import { ProfileCreate } from "../../shared/api/profiles.ts";
import { SiteCreate } from "../../shared/api/sites.ts";
import type { NodeId, ProfileId, SiteId, WorkflowId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import type { TaskType } from "../../shared/tasks/index.ts";
import { type MaasSimulator, startMaasSimulator } from "../fakes/maas/simulator.ts";
import { bmcAddress, PXE_NIC, ROCE_NICS, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { checkedHardware } from "./checked-hardware.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { DEPLOY_PASSWORD } from "./deploy-password.ts";
import { quietLog } from "./log.ts";
import { MemorySecrets } from "./memory-secrets.ts";
import { NO_BMC } from "./no-bmc.ts";

export const SKU = "mi300x.192g.8gpu";
/** The id of a SKU with GPUs whose memory Muster can overwrite. */
export const NVIDIA_SKU = "h200.141g.8gpu";
const CA = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2FuYXJ5\n-----END CERTIFICATE-----\n";

const FIRST_BOOT: FirstBoot = {
  agentUrl: "https://hub.example:8443",
  keys: () => ({ caBundlePem: CA, taskSigningPublicKey: "A".repeat(43) }),
  agentPackage: async () => null,
};

/** A test environment for onboardings: a database, a simulated MAAS region with servers, one site with a profile, and the stages' services. */
export interface OnboardingRig {
  /** How long the stages' calls to MAAS wait for an answer, or null for the waiting times of a real hub. */
  patience: { readonly quickMs: number; readonly slowMs: number } | null;
  readonly test: TestDatabase;
  readonly maas: MaasSimulator;
  readonly secrets: MemorySecrets;
  readonly services: WorkflowServices;
  readonly siteId: SiteId;
  readonly profileId: ProfileId;
  /** Starts the onboarding of the n-th simulated server, counted from 1, and writes RoCE rows for the server. */
  start(n: number, profileId?: ProfileId): Promise<{ id: WorkflowId; nodeId: NodeId; hostname: string }>;
  addProfile(name: string, knobs: Partial<ProfileCreate>): Promise<ProfileId>;
  /** Simulates the agent of the onboarding's host, once MAAS has deployed the host's machine. */
  playAgent(id: WorkflowId): Promise<void>;
  close(): Promise<void>;
}

export async function startOnboardingRig(options: { machines: number; speed?: number }): Promise<OnboardingRig> {
  const test = await createTestDatabase();
  const maas = await startMaasSimulator({ machines: options.machines, speed: options.speed ?? 1e6 });
  const site = await seedSite(test, maas.url);
  return rigOn({ test, maas, secrets: new MemorySecrets(), ...site });
}

/** Makes the test environment of a database that already has a site, and writes the site's credentials to the secret store. */
export async function rigOn(
  world: Pick<OnboardingRig, "test" | "maas" | "secrets" | "siteId" | "profileId">,
): Promise<OnboardingRig> {
  const { test, maas, secrets, siteId, profileId } = world;
  await secrets.write(SECRET_PATHS.maasToken(siteId), { token: maas.apiKey });
  await secrets.write(SECRET_PATHS.defaultPower(siteId), { user: SITE_BMC_USER, pass: SITE_BMC_PASSWORD });
  await secrets.write(SECRET_PATHS.deployPassword(siteId), { password: DEPLOY_PASSWORD });
  const limiter = new RequestLimiter();
  const client = { baseUrl: maas.url, apiKey: new Secret(maas.apiKey), limiter };
  const services: WorkflowServices = {
    db: test.database.db,
    inTx: test.database.inTx,
    log: quietLog,
    secrets,
    maas: async () => createMaasClient({ ...client, ...(rig.patience === null ? {} : { timeouts: rig.patience }) }),
    bmc: NO_BMC,
    firstBoot: FIRST_BOOT,
    countersign: (await openTaskSigner(new MemorySecrets())).countersign,
    checkAnswers: async (check) => checkAnswers(check),
  };
  const rig: OnboardingRig = {
    patience: null,
    ...world,
    services,
    start: (n, profile = profileId) => start(test, { n, siteId, profileId: profile }),
    addProfile: (name, knobs) => addProfile(test, siteId, name, knobs),
    playAgent: (id) => playAgent(test, maas, id),
    close: async () => {
      await maas.close();
      await test.drop();
    },
  };
  return rig;
}

export async function seedSite(
  { database }: Pick<TestDatabase, "database">,
  url: string,
): Promise<{ siteId: SiteId; profileId: ProfileId }> {
  const site = SiteCreate.parse({
    name: "dc1",
    region_code: "r1",
    api_base_url: url,
    pxe_iface: "ens19",
    pxe_vlan_vid: 310,
    node_pxe_iface: PXE_NIC,
  });
  const [row] = await database.db
    .insert(maasSites)
    .values({
      name: site.name,
      regionCode: site.region_code,
      apiBaseUrl: site.api_base_url,
      pxeIface: site.pxe_iface,
      pxeVlanVid: site.pxe_vlan_vid,
      nodePxeIface: site.node_pxe_iface,
      deployUser: site.deploy_user,
      deploySshIface: site.deploy_ssh_iface,
      upstreamDnsServers: site.upstream_dns_servers,
    })
    .returning();
  if (row === undefined) throw new Error("no site was made");
  await database.db
    .update(maasSites)
    .set({
      apiTokenVaultPath: SECRET_PATHS.maasToken(row.id),
      defaultPowerCredsVaultPath: SECRET_PATHS.defaultPower(row.id),
      deployPasswordVaultPath: SECRET_PATHS.deployPassword(row.id),
    })
    .where(eq(maasSites.id, row.id));
  await database.db.insert(skus).values([
    { id: SKU, description: "", gpuVendor: "amd", gpuModel: "MI300X", gpusTotal: 8 },
    { id: NVIDIA_SKU, description: "", gpuVendor: "nvidia", gpuModel: "H200", gpusTotal: 8 },
  ]);
  const profileId = await addProfile({ database }, row.id, "gpu", {});
  return { siteId: row.id, profileId };
}

async function addProfile(
  { database }: Pick<TestDatabase, "database">,
  siteId: SiteId,
  name: string,
  knobs: Partial<ProfileCreate>,
): Promise<ProfileId> {
  const profile = ProfileCreate.parse({ name, ...knobs });
  const camel = (key: string): string => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const columns = Object.fromEntries(Object.entries(profile).map(([key, value]) => [camel(key), value]));
  const [row] = await database.db
    .insert(maasSiteProfiles)
    .values({ siteId, ...(columns as unknown as Omit<typeof maasSiteProfiles.$inferInsert, "siteId">) })
    .returning({ id: maasSiteProfiles.id });
  if (row === undefined) throw new Error("no profile was made");
  return row.id;
}

async function start(
  { database }: TestDatabase,
  host: { n: number; siteId: SiteId; profileId: ProfileId },
): Promise<{ id: WorkflowId; nodeId: NodeId; hostname: string }> {
  const hostname = `host-${host.n}`;
  await database.db
    .insert(maasRoceAssignments)
    .values(
      ROCE_NICS.slice(0, 2).map((nic, rail) => ({
        siteId: host.siteId,
        hostname,
        interface: nic,
        ipv4Cidr: `172.${30 + rail}.${Math.floor(host.n / 100)}.${2 * (host.n % 100) + 1}/31`,
      })),
    )
    .onConflictDoNothing();
  const request = {
    site_id: host.siteId,
    profile_id: host.profileId,
    sku_id: SKU,
    hostname,
    ipmi_ip: bmcAddress(host.n),
  };
  const created = await database.inTx((tx) => startOnboarding(tx, { request, requestedBy: "ann" }));
  return { id: created.onboarding_id, nodeId: created.node_id, hostname };
}

async function playAgent({ database }: TestDatabase, maas: MaasSimulator, id: WorkflowId): Promise<void> {
  const { db } = database;
  const [about] = await db
    .select({ nodeId: nodes.id, generation: nodes.generation, systemId: nodeOnboardings.maasSystemId })
    .from(nodeOnboardings)
    .innerJoin(nodes, eq(nodes.id, nodeOnboardings.nodeId))
    .where(eq(nodeOnboardings.onboardingId, id));
  if (about?.systemId === null || about === undefined) return;
  await playAgentOn({ database }, maas, { ...about, systemId: about.systemId });
}

interface HostOfNode {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly systemId: string;
}

/**
 * Simulates a host's agent after the deploy: the agent enrolls, connects and reports that it is healthy, and hardware sync works. Returns true if
 * MAAS has deployed the host's machine.
 */
export async function playAgentOn(
  { database }: Pick<TestDatabase, "database">,
  maas: MaasSimulator,
  { nodeId, generation, systemId }: HostOfNode,
): Promise<boolean> {
  const machine = maas.sim.region.findMachine(systemId);
  if (machine?.status !== 6) return false;
  if (await isAgentIdle(database.db, nodeId, generation)) return true;
  await database.inTx(async (tx) => {
    // The node of the simulated agent gets a certificate, because an agent with a session must have enrolled before.
    await tx
      .insert(nodeCertificates)
      .values({
        serial: `${nodeId}/${generation}`,
        nodeId,
        generation,
        publicKeySha256: "",
        notBefore: new Date(),
        notAfter: new Date(Date.now() + 86_400_000),
      })
      .onConflictDoNothing();
    await tx
      .insert(agentSessions)
      .values({
        nodeId,
        sessionEpoch: 1,
        hubId: randomUUID(),
        channel: "websocket",
        state: "open",
        bootId: "boot",
        agentVersion: "1",
        protocolVersion: 1,
        generation,
        heartbeatTtlMs: 30_000,
      })
      .onConflictDoUpdate({ target: agentSessions.nodeId, set: { generation, state: "open" } });
    const healthy = {
      nodeId,
      type: "agent.healthy",
      status: "True" as const,
      reason: "Ready",
      message: "",
      generation,
      source: "agent",
      observedAt: new Date(),
    };
    await tx
      .insert(nodeConditions)
      .values(healthy)
      .onConflictDoUpdate({ target: [nodeConditions.nodeId, nodeConditions.type], set: { generation } });
    const done = await tx
      .update(tasks)
      .set({ state: "succeeded", finishedAt: sql`now()` })
      .where(isReseedOf(nodeId))
      .returning({ id: tasks.id });
    if (done.length > 0) machine.lastSync = Date.now() + 1;
    const checked = await tx
      .update(tasks)
      .set({
        state: "succeeded",
        finishedAt: sql`clock_timestamp()`,
        result: await checkedHardware(database.db, nodeId),
      })
      .where(isOpenTask(nodeId, "node.check_hardware"))
      .returning({ id: tasks.id });
    await wakeWorkflows(tx, [waitKey.node(nodeId), ...[...done, ...checked].map((task) => waitKey.task(task.id))]);
  });
  return true;
}

/** True if the simulated agent has connected, has reported that it is healthy, and has no order for the hardware sync. */
async function isAgentIdle(db: Db, nodeId: NodeId, generation: number): Promise<boolean> {
  const orders = db
    .select({ id: tasks.id })
    .from(tasks)
    .where(or(isReseedOf(nodeId), isOpenTask(nodeId, "node.check_hardware")));
  const [row] = await db
    .select({ nodeId: agentSessions.nodeId })
    .from(agentSessions)
    .innerJoin(nodeConditions, eq(nodeConditions.nodeId, agentSessions.nodeId))
    .where(
      and(
        eq(agentSessions.nodeId, nodeId),
        eq(agentSessions.generation, generation),
        eq(agentSessions.state, "open"),
        eq(nodeConditions.type, "agent.healthy"),
        eq(nodeConditions.generation, generation),
        sql`not exists ${orders}`,
      ),
    );
  return row !== undefined;
}

const isOpenTask = (nodeId: NodeId, type: TaskType) =>
  and(eq(tasks.nodeId, nodeId), eq(tasks.type, type), inArray(tasks.state, ["queued", "offered"]));
const isReseedOf = (nodeId: NodeId) => isOpenTask(nodeId, "node.hw_sync_reseed");
