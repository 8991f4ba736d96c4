/** The data for the tests of the operators' page: a hub, a simulated MAAS with a host in each state, and an unreachable site. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { SimulatorControl } from "../support/simulator-control.ts";
import { until } from "../support/until.ts";
import { viewerToken } from "../support/viewer-token.ts";
import { MARKUP, seedDarkSite } from "./dark-site.ts";

/** Hosts of the site whose simulated MAAS answers. Each key says what happens to the host's onboarding. */
export const LIVE = { good: "c07u41", refused: "c07u42", waiting: "c07u43" } as const;

export interface PageWorld {
  readonly rig: Rig;
  readonly maas: SimulatorControl;
  readonly database: TestDatabase;
  readonly tokens: { readonly admin: string; readonly viewer: string };
  active(): Promise<void>;
  close(): Promise<void>;
}

export async function startPageWorld(): Promise<PageWorld> {
  const stateDir = mkdtempSync(join(memoryFolder(), "muster-page-"));
  const database = await createTestDatabase();
  const rig = await startRig({ stateDir, machines: 3, speed: 400, databaseUrl: database.url });
  const close = async (): Promise<void> => {
    await rig.stop();
    await database.drop();
    rmSync(stateDir, { recursive: true, force: true });
  };
  try {
    await furnish(rig);
    await seedDarkSite(database);
    return {
      rig,
      maas: new SimulatorControl(rig.maas.control),
      database,
      tokens: { admin: readFileSync(rig.adminTokenFile, "utf8").trim(), viewer: await viewerToken(database) },
      active: () => activeNode(rig),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Onboards the three hosts of `LIVE`, of which `good` becomes active. The simulated MAAS refuses to commission the host `refused`, with markup in its
 * error text. The commissioning of the host `waiting` never ends.
 */
async function furnish(rig: Rig): Promise<void> {
  const maas = new SimulatorControl(rig.maas.control);
  const [good, refused, waiting] = demoHosts(3);
  if (good === undefined || refused === undefined || waiting === undefined) throw new Error("three hosts are needed");
  const site = await seedSite(rig.api, rig.maas, [good, refused, waiting]);
  const selectors = { site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId };
  await maas.fault({ match: { op: "commission" }, kind: "status", code: 400, body: `No: ${MARKUP}` });
  const { batch_id: batchId } = await rig.api.onboardBatch({ ...selectors, nodes: [refused] });
  await until(`the host ${refused.hostname} of batch ${batchId} to be refused`, async () => {
    const [one] = await rig.api.onboardings();
    return one?.status === "failed_manual_intervention" ? true : undefined;
  });
  await rig.api.onboard({ ...selectors, ...good });
  await commissioningHangs(maas, waiting.ipmi_ip);
  await rig.api.onboard({ ...selectors, ...waiting });
}

/**
 * Makes the commissioning of a simulated host hang, after the host has appeared in MAAS. The simulator plans outcomes only for machines that MAAS
 * knows.
 */
async function commissioningHangs(maas: SimulatorControl, bmcAddress: string): Promise<void> {
  const hardware = z.array(z.looseObject({ id: z.string(), bmcAddress: z.string() }));
  const box = hardware.parse(await maas.call("GET", "hardware")).find((one) => one.bmcAddress === bmcAddress);
  const known = new Set((await maas.machines()).map((one) => one.system_id));
  await maas.call("POST", `hardware/${box?.id}/enlist`);
  const machine = (await maas.machines()).find((one) => !known.has(one.system_id));
  await maas.call("POST", `machines/${machine?.system_id}/outcomes`, { commission: ["hang"] });
}

async function activeNode(rig: Rig): Promise<void> {
  await until(`the host ${LIVE.good} to be active`, async () => {
    const node = (await rig.api.nodes()).find((one) => one.hostname === LIVE.good);
    return node?.status === "active" && node.schedulable ? true : undefined;
  });
}
