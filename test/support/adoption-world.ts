/**
 * A site whose MAAS region has running machines that no node of Muster knows: a simulated region over HTTP, the admin API with a real MAAS client, and
 * the watcher and reconciler of a hub, one poll after the other.
 */
import { randomUUID } from "node:crypto";
import { holdWatch } from "../../hub/db/queries/maas-site-watches.ts";
import type { ReadMaasFacts } from "../../hub/http/deps.ts";
import { createMaasClient } from "../../hub/maas/client.ts";
import { Reconciler } from "../../hub/reconciler/reconcile.ts";
import { readMaasFacts } from "../../hub/startup/site-services.ts";
import { emptyMemory, pollSite } from "../../hub/watcher/poll.ts";
import type { AdoptionCreated } from "../../shared/api/adoptions.ts";
import { SiteId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { type MaasSimulator, startMaasSimulator } from "../fakes/maas/simulator.ts";
import type { MaasVersion, Machine } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { type Answer, type ApiHarness, seedApi, startApi } from "./api-harness.ts";
import { deployedMachine } from "./deployed-machine.ts";
import { quietLog } from "./log.ts";

const ADMIN = "/api/v1/admin";
const LEASE_SECONDS = 600;

export class AdoptionWorld {
  readonly api: ApiHarness;
  readonly region: MaasSimulator;
  readonly siteId: SiteId;
  readonly profileId: string;
  readonly skuId: string;
  readonly #hubId = randomUUID();
  readonly #memory = emptyMemory();
  #made = 0;

  private constructor(
    api: ApiHarness,
    region: MaasSimulator,
    ids: { siteId: string; profileId: string; skuId: string },
  ) {
    this.api = api;
    this.region = region;
    this.siteId = SiteId.parse(ids.siteId);
    this.profileId = ids.profileId;
    this.skuId = ids.skuId;
  }

  /** `open` starts the admin API on what MAAS says of its machines, by default without sign-in. */
  static async start(
    version: MaasVersion = "3.7.3",
    open: (maasFacts: ReadMaasFacts) => Promise<ApiHarness> = (maasFacts) => startApi({ maasFacts }),
  ): Promise<AdoptionWorld> {
    const region = await startMaasSimulator({ version, machines: 1 });
    const maas = clientOf(region);
    const api = await open(readMaasFacts(async () => maas));
    return new AdoptionWorld(api, region, await seedApi(api));
  }

  /** A machine that MAAS has deployed for the hub's user, without Muster. */
  deployed(hostname: string, change: (machine: Machine) => void = () => undefined): Machine {
    this.#made += 1;
    return deployedMachine(this.region.sim.region, { hostname, n: this.#made, mac: macOf(this.#made) }, change);
  }

  change(machine: Machine, change: (machine: Machine) => void): void {
    const { region } = this.region.sim;
    change(machine);
    region.event(machine, "DEBUG", "Node changed", "by somebody else");
    region.changed();
  }
  status = (machine: Machine, status: keyof typeof STATUS): void =>
    this.change(machine, () => this.region.sim.region.forceStatus(machine, STATUS[status]));

  /** Polls the site as a hub does, reads all its machines, and compares them with the nodes. */
  async poll(): Promise<void> {
    const { db, inTx, pool } = { ...this.api.database.database };
    await pool.query(
      `insert into maas_site_watches (site_id, sweep_requested_at) values ($1, now())
         on conflict (site_id) do update set sweep_requested_at = now()`,
      [this.siteId],
    );
    const watch = await holdWatch(db, this.siteId, this.#hubId, LEASE_SECONDS);
    if (watch === null) throw new Error("another hub watches the site");
    const maas = clientOf(this.region);
    const options = { db, inTx, log: quietLog, sweepIntervalMs: 3_600_000, sweepPatienceMs: 60_000 };
    const result = await pollSite(options, this.siteId, watch, maas, this.#memory);
    if (result === "lost") throw new Error("another hub watches the site");
    await new Reconciler({ db, inTx, log: quietLog }).reconcile({
      siteId: this.siteId,
      fence: watch.fence,
      maas,
      ...result,
    });
  }

  adopt = (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
    this.api.ask("POST", `${ADMIN}/maas-sites/${this.siteId}/adoptions`, { sku_id: this.skuId, ...body }, headers);
  plan = (body: object): Promise<Answer> => this.adopt({ plan: true, ...body });
  order = (body: object = {}, form = ""): Promise<Answer> =>
    this.api.ask("POST", `${ADMIN}/maas-sites/${this.siteId}/adoption-commands${form}`, body);
  node = async (id: string) => (await this.api.ask("GET", `${ADMIN}/nodes/${id}`)).body;

  /** Adopts one machine and returns the id of its node. */
  async adopted(machine: Machine): Promise<string> {
    const { machines } = (await this.adopt({ system_ids: [machine.systemId] })).body as AdoptionCreated;
    const id = machines[0]?.node_id;
    if (id === undefined || id === null) throw new Error(`not adopted: ${JSON.stringify(machines)}`);
    return id;
  }

  /** The requests of each kind that changed something in MAAS, or were meant to. */
  writesToMaas(): Record<string, number> {
    const requests = Object.entries(this.region.sim.region.state.requests);
    return Object.fromEntries(requests.filter(([operation]) => !/^GET /.test(operation)));
  }

  async close(): Promise<void> {
    await this.api.close();
    await this.region.close();
  }
}

const clientOf = ({ url, apiKey }: MaasSimulator) => createMaasClient({ baseUrl: url, apiKey: new Secret(apiKey) });
const macOf = (n: number): string =>
  `b8:59:9f:ff:${(n >> 8).toString(16).padStart(2, "0")}:${(n & 255).toString(16).padStart(2, "0")}`;
