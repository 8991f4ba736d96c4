import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eq } from "../../hub/db/orm.ts";
import { bindNodeToMachine, unbindNode } from "../../hub/db/queries/node-machines.ts";
import { maasSites, nodeOnboardings, nodes, workflowSubjects, workflows } from "../../hub/db/schema/index.ts";
import { takeMachine } from "../../hub/workflows/provisioning/take-machine.ts";
import { StageFailure } from "../../hub/workflows/stage-failure.ts";
import { NodeId, SiteId, WorkflowId } from "../../shared/ids.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

/**
 * Sites 0 and 1 have one MAAS region, but the hub does not know that the two sites share a region. Site 2 has another MAAS region, which uses the
 * same system ids for other hosts.
 */
const REGION_OF = [0, 0, 1] as const;
const SYSTEM_IDS = ["abc123", "def456"] as const;
const BMCS = [
  ["10.0.0.1", "10.0.0.2", "fd00::1"],
  ["10.9.0.1", "10.9.0.2", "fd09::1"],
] as const;
/** Spellings of one BMC address, as operators may enter it. */
const SPELT = [(bmc: string) => bmc, (bmc: string) => bmc.toUpperCase(), (bmc: string) => ` ${bmc} `];

interface Asked {
  readonly site: number;
  readonly systemId: (typeof SYSTEM_IDS)[number];
  /** The index in `BMCS` of the onboarding request's BMC address, which may be the wrong address. */
  readonly bmc: number;
  readonly spelt: number;
  /** What happens to an onboarding that got its machine, before the next wave of onboardings starts. */
  readonly end: "goes on" | "is a node" | "is cancelled" | "was a node";
}

let test: TestDatabase;
let sites: { id: SiteId; name: string }[];
beforeAll(async () => {
  test = await createTestDatabase();
  const about = {
    regionCode: "r1",
    pxeIface: "ens19",
    pxeVlanVid: 310,
    nodePxeIface: "eno1",
    deployUser: "ops",
    deploySshIface: "eno1",
    upstreamDnsServers: ["10.0.0.53"],
  };
  sites = await test.database.db
    .insert(maasSites)
    .values(REGION_OF.map((_, n) => ({ ...about, name: `dc${n}`, apiBaseUrl: `http://dc${n}.example:5240/MAAS` })))
    .returning({ id: maasSites.id, name: maasSites.name });
});
afterAll(() => test?.drop());

/** The BMC addresses of the machines in MAAS. The BMC address of a machine may be empty until an onboarding has entered the address in MAAS. */
class Regions {
  readonly #bmcs = new Map<string, string>();
  constructor(known: readonly boolean[]) {
    for (const [n, is] of known.entries()) {
      const region = n < SYSTEM_IDS.length ? 0 : 1;
      if (is)
        this.#bmcs.set(`${region}/${SYSTEM_IDS[n % SYSTEM_IDS.length]}`, BMCS[region][n % SYSTEM_IDS.length] ?? "");
    }
  }
  bmcOf = (machine: string): string => this.#bmcs.get(machine) ?? "";
  tell = (machine: string, bmc: string) => this.#bmcs.set(machine, bmc);
}

const machineOf = ({ site, systemId }: Asked): string => `${REGION_OF[site]}/${systemId}`;
const bmcOf = ({ site, bmc, spelt }: Asked): string => (SPELT[spelt] ?? String)(BMCS[REGION_OF[site] ?? 0][bmc] ?? "");

class Onboarding {
  readonly id = WorkflowId.parse(randomUUID());
  readonly nodeId = NodeId.parse(randomUUID());
  readonly hostname = `host-${this.id}`;
  readonly asked: Asked;
  readonly #site: { id: SiteId; name: string };
  constructor(asked: Asked) {
    this.asked = asked;
    this.#site = sites[asked.site] ?? { id: SiteId.parse(randomUUID()), name: "" };
  }

  async start(): Promise<void> {
    const siteId = this.#site.id;
    const { db } = test.database;
    const stage = "create_or_find_in_maas";
    const input = { hostname: this.hostname, ipmi_ip: bmcOf(this.asked) };
    await db.insert(workflows).values({ id: this.id, kind: "onboard", status: "running", siteId, stage, input });
    await db.insert(nodeOnboardings).values({
      onboardingId: this.id,
      nodeId: this.nodeId,
      siteId,
      profileId: randomUUID() as never,
      skuId: "sku",
      hostname: this.hostname,
      ipmiIp: bmcOf(this.asked),
    });
  }

  /** Returns true if the onboarding got its machine. The argument `bmc` is the machine's BMC address in MAAS. */
  async take(bmc: string): Promise<boolean> {
    const host = { nodeId: this.nodeId, hostname: this.hostname, ipmiIp: bmcOf(this.asked) };
    const taker = { workflowId: this.id, host, site: this.#site };
    try {
      await test.database.inTx((tx) => takeMachine(tx, taker, { systemId: this.asked.systemId, bmc }));
      return true;
    } catch (error) {
      if (!(error instanceof StageFailure)) throw error;
      expect(error.failure.code).toBe("conflicting_candidates");
      return false;
    }
  }

  async end(): Promise<void> {
    const { end, systemId: maasSystemId } = this.asked;
    if (end === "goes on") return;
    await test.database.inTx(async (tx) => {
      await tx.delete(workflowSubjects).where(eq(workflowSubjects.workflowId, this.id));
      if (end === "is cancelled") return;
      const about = { sku: "sku", gpusTotal: 8, regionCode: "r1", onboardingMode: "maas" } as const;
      const status = end === "is a node" ? "active" : "deleted";
      await tx
        .insert(nodes)
        .values({ ...about, id: this.nodeId, hostname: this.hostname, siteId: this.#site.id, status });
      const binding = { nodeId: this.nodeId, siteId: this.#site.id, maasSystemId, ipmiIp: bmcOf(this.asked) };
      await bindNodeToMachine(tx, binding);
      if (status === "deleted") await unbindNode(tx, this.nodeId);
    });
  }
  get isFree(): boolean {
    return this.asked.end === "is cancelled" || this.asked.end === "was a node";
  }
}

const asked: fc.Arbitrary<Asked> = fc.record({
  site: fc.nat(REGION_OF.length - 1),
  systemId: fc.constantFrom(...SYSTEM_IDS),
  bmc: fc.nat(2),
  spelt: fc.nat(SPELT.length - 1),
  end: fc.constantFrom("goes on", "is a node", "is cancelled", "was a node"),
});
const world = fc.record({
  known: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
  waves: fc.array(fc.array(asked, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 }),
});

it("a machine belongs to at most one host, even if several sites ask at once and two regions use the same ids", async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ known, waves }) => {
      const { pool } = test.database;
      await pool.query("truncate workflows, node_onboardings, workflow_subjects, nodes cascade");
      const regions = new Regions(known);
      const owners = new Map<string, Onboarding>();
      for (const wave of waves) {
        const asking = wave.map((one) => new Onboarding(one));
        for (const one of asking) await one.start();
        // Each onboarding of a wave reads the BMC addresses in MAAS before any onboarding of the wave takes its machine.
        const seen = asking.map((one) => regions.bmcOf(machineOf(one.asked)));
        const got = await Promise.all(asking.map((one, n) => one.take(seen[n] ?? "")));
        for (const machine of new Set(wave.map(machineOf))) {
          const here = asking.filter((one) => machineOf(one.asked) === machine);
          const winners = here.filter((one) => got[asking.indexOf(one)]);
          const before = owners.get(machine);
          expect(winners.length + (before === undefined ? 0 : 1)).toBeLessThanOrEqual(1);
          // If MAAS knows the BMC of a machine, the hub refuses no onboarding because of a machine in another region.
          if (before === undefined && seen[asking.indexOf(here[0] as Onboarding)] !== "")
            expect(winners).toHaveLength(1);
          const [winner] = winners;
          if (winner === undefined) continue;
          regions.tell(machine, bmcOf(winner.asked));
          await winner.end();
          if (!winner.isFree) owners.set(machine, winner);
        }
      }
    }),
    { numRuns: 25 },
  );
});
