/** Several hubs that admit at once must pick the right hosts from the queues of several profiles and sites (lifecycle 4.4). */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { admitDecommissions, admitWithin, ONBOARDINGS } from "../../hub/db/queries/admission.ts";
import { ONBOARD } from "../../hub/workflows/onboarding/onboard.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import { DECOMMISSION_MODES, ONBOARDING_STAGES, STAGES_OF_MODE } from "../../shared/workflow-status.ts";
import { type ApiHarness, OUTSIDE, seedApi, startApi } from "../support/api-harness.ts";
import { quietLog } from "../support/log.ts";
import { MemorySecrets } from "../support/memory-secrets.ts";

const STATUSES = ["pending", "pending", "pending", "running", "compensating", "failed_retryable", "completed"] as const;
interface Host {
  readonly id: string;
  /** The index of the profile that the host's onboarding names. Each profile belongs to one site. */
  readonly profile: number;
  readonly status: (typeof STATUSES)[number];
  /** The minute in which somebody requested the onboarding. */
  readonly minute: number;
}
/** The modes of the decommissions in the test, which share one limit of parallel operations. */
const MODES = ["drain", "release"] as const;
const LANES = ["onboardings", "decommissions of batches"] as const;
type Lane = (typeof LANES)[number];
const SITE_OF = [0, 0, 0, 1, 1];
const isBusy = (host: Host): boolean => host.status === "running" || host.status === "compensating";
const byTurn = (a: Host, b: Host): number => a.minute - b.minute || (a.id < b.id ? -1 : Number(a.id > b.id));

/**
 * Applies the admission rule to one host at a time, and skips a host that may not begin yet. The onboarding of a host begins while its profile has
 * fewer busy hosts than the profile's limit. A host is busy while its onboarding runs or is compensated. A site may have fewer busy hosts than the
 * largest limit among its profiles with busy or waiting hosts.
 */
function allowed(hosts: readonly Host[], limits: readonly number[]): Set<string> {
  const admitted = new Set<string>();
  for (const site of new Set(SITE_OF)) {
    const here = hosts.filter((host) => SITE_OF[host.profile] === site && (isBusy(host) || host.status === "pending"));
    const most = Math.max(...here.map((host) => limits[host.profile] ?? 0));
    const busy = here.filter(isBusy);
    for (const host of here.filter((one) => one.status === "pending").toSorted(byTurn)) {
      const ofProfile = busy.filter((one) => one.profile === host.profile).length;
      if (ofProfile >= (limits[host.profile] ?? 0) || busy.length >= most) continue;
      admitted.add(host.id);
      busy.push(host);
    }
  }
  return admitted;
}

describe("admission", () => {
  let api: ApiHarness;
  let sites: string[];
  let profiles: string[];
  const query = async (text: string, values: unknown[] = []) =>
    (await api.database.database.pool.query(text, values)).rows;
  /** Admits operations as a hub does, in one transaction for each workflow kind. */
  const admit = async (lane: Lane = "onboardings"): Promise<string[]> => {
    const { inTx } = api.database.database;
    if (lane === "onboardings") return (await inTx((tx) => admitWithin(tx, ONBOARD, ONBOARDINGS))).map((row) => row.id);
    const admitted: string[] = [];
    for (const mode of MODES) admitted.push(...(await inTx((tx) => admitDecommissions(tx, mode))).map((row) => row.id));
    return admitted;
  };
  const byThreeHubs = async (lane?: Lane): Promise<string[]> =>
    (await Promise.all([admit(lane), admit(lane), admit(lane)])).flat();

  beforeAll(async () => {
    api = await startApi();
    const seeded = [await seedApi(api, "dc1"), await seedApi(api, "dc2")];
    sites = seeded.map((site) => site.siteId);
    profiles = [];
    for (const [index, site] of SITE_OF.entries()) {
      const path = `/api/v1/admin/maas-sites/${sites[site]}/profiles`;
      profiles.push((await api.ask("POST", path, { name: `profile-${index}` })).body.id);
    }
  });
  afterAll(() => api?.close());

  async function stage(hosts: readonly Host[], limits: readonly number[], lane?: Lane): Promise<void> {
    await query("truncate workflows, node_onboardings, node_decommissions, workflow_events cascade");
    for (const [index, limit] of limits.entries())
      await query("update maas_site_profiles set batch_max_parallel = $2 where id = $1", [profiles[index], limit]);
    await (lane === "decommissions of batches" ? arriveInBatch(hosts) : arrive(hosts));
  }
  /**
   * Adds decommissions of one batch to the queue. Profile 0 is the default profile of its site. An ended onboarding of the node may name another
   * profile than profile 0.
   */
  async function arriveInBatch(hosts: readonly Host[]): Promise<void> {
    await query("update maas_sites set default_profile_id = null");
    await query("update maas_sites set default_profile_id = $2 where id = $1", [sites[0], profiles[0]]);
    const rows = hosts.map((host, index) => ({
      ...host,
      node: randomUUID(),
      onboarding: randomUUID(),
      mode: MODES[index % MODES.length],
      site: sites[SITE_OF[host.profile] ?? 0],
      profile_id: host.profile === 0 ? null : profiles[host.profile],
    }));
    await query(
      `with hosts as (select * from json_to_recordset($1) as h(
         id uuid, node uuid, onboarding uuid, mode text, site uuid, profile_id uuid, status text, minute int)),
       made as (insert into workflows (id, kind, status, site_id, batch_id, stage, input, requested_at)
         select id, mode, status, site, $2::uuid, 's', '{}'::jsonb, now() + minute * interval '1 minute' from hosts
         union all select onboarding, 'onboard', 'completed', site, null, 's', '{}'::jsonb, now() from hosts where profile_id is not null),
       onboarded as (insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
         select onboarding, node, site, profile_id, 'sku', id::text, id::text from hosts where profile_id is not null)
       insert into node_decommissions (decommission_id, node_id, site_id, hostname, mode, reason, prior_status)
         select id, node, site, id::text, mode, 'old', 'retired' from hosts`,
      [JSON.stringify(rows), randomUUID()],
    );
  }
  async function arrive(hosts: readonly Host[]): Promise<void> {
    const rows = hosts.map((host) => ({
      ...host,
      site: sites[SITE_OF[host.profile] ?? 0],
      profile_id: profiles[host.profile],
    }));
    await query(
      `with hosts as (select * from json_to_recordset($1) as h(
         id uuid, site uuid, profile_id uuid, status text, minute int)),
       made as (insert into workflows (id, kind, status, site_id, stage, input, requested_at)
         select id, $2, status, site, $3, '{}', now() + minute * interval '1 minute' from hosts)
       insert into node_onboardings (onboarding_id, node_id, site_id, profile_id, sku_id, hostname, ipmi_ip)
         select id, gen_random_uuid(), site, profile_id, 'sku', id::text, id::text from hosts`,
      [JSON.stringify(rows), ONBOARD, ONBOARDING_STAGES[0]],
    );
  }
  const waiting = (profile: number, count: number, minute: number): Host[] =>
    Array.from({ length: count }, () => ({ id: randomUUID(), profile, status: "pending", minute }));
  const host = fc.record({
    id: fc.uuid(),
    profile: fc.nat(SITE_OF.length - 1),
    status: fc.constantFrom(...STATUSES),
    minute: fc.nat(3),
  });

  it.each(LANES)(
    "admits exactly the %s that the limits of their site and profile allow, each by one hub",
    async (lane) => {
      const queues = fc.tuple(
        fc.uniqueArray(host, { maxLength: 40, selector: (one) => one.id }),
        fc.tuple(...SITE_OF.map(() => fc.integer({ min: 1, max: 6 }))),
      );
      await fc.assert(
        fc.asyncProperty(queues, async ([hosts, limits]) => {
          await stage(hosts, limits, lane);
          expect((await byThreeHubs(lane)).toSorted()).toEqual([...allowed(hosts, limits)].toSorted());
          expect(await admit(lane), "a second look finds no further place").toEqual([]);
        }),
        { numRuns: 60 },
      );
    },
  );

  it("limits the decommissions of batches of all modes together, each mode by its own workflow kind", async () => {
    const { db, inTx } = api.database.database;
    const kinds = workflowsOf({ db, inTx, log: quietLog, secrets: new MemorySecrets(), ...OUTSIDE });
    await stage(waiting(1, DECOMMISSION_MODES.length, 0), [9, 3, 9, 9, 9], "decommissions of batches");
    for (const [index, mode] of DECOMMISSION_MODES.entries())
      await query(
        `update workflows set kind = $1, stage = $2 where id =
           (select id from workflows where status = 'pending' order by id offset $3 limit 1)`,
        [mode, STAGES_OF_MODE[mode][0], index],
      );
    const begun: string[] = [];
    for (let round = 0; round < 2; round += 1)
      for (const kind of kinds) begun.push(...(await inTx((tx) => kind.admit(tx))).map((row) => row.kind));
    expect(begun.toSorted()).toEqual(DECOMMISSION_MODES.slice(0, 3).toSorted());
  });

  it("admits every decommission outside a batch at once, whatever the batches of its site run", async () => {
    const limits = [1, 1, 1, 1, 1];
    await stage(waiting(1, 6, 0), limits, "decommissions of batches");
    await query(
      "update workflows set batch_id = null where id in (select id from workflows where status = 'pending' order by id limit 4)",
    );
    const single = (await query("select id from workflows where status = 'pending' and batch_id is null")).map(
      ({ id }) => id,
    );
    const begun = await admit("decommissions of batches");
    expect(single.filter((id) => begun.includes(id)).toSorted()).toEqual(single.toSorted());
    expect(begun).toHaveLength(single.length + 1);
  });

  it("admits the hosts of a wide profile although the long queue of a narrow profile is ahead of them", async () => {
    const [narrow, wide] = [waiting(0, 12, 0), waiting(1, 5, 1)];
    await stage([...narrow, ...wide], [1, 10, 1, 1, 1]);
    const begun = await byThreeHubs();
    const ofWide = new Set(wide.map((one) => one.id));
    expect(begun.filter((id) => ofWide.has(id))).toHaveLength(5);
    expect(begun).toHaveLength(6);
  });

  it("admits nobody at a site where another hub is admitting, not even a new host with an earlier turn", async () => {
    const limits = [1, 1, 1, 1, 1];
    await stage(waiting(0, 2, 0), limits);
    await api.database.database.inTx(async (tx) => {
      expect(await admitWithin(tx, ONBOARD, ONBOARDINGS)).toHaveLength(1);
      await arrive(waiting(0, 1, -1));
      const [elsewhere] = waiting(3, 1, 0);
      if (elsewhere !== undefined) await arrive([elsewhere]);
      expect(await admit(), "the other site's alone").toEqual([elsewhere?.id]);
    });
    expect(await admit()).toEqual([]);
  });

  it("keeps every limit while hosts end and begin, and in the end admits every host of every profile", async () => {
    const limits = [1, 4, 2, 3, 1];
    const hosts = SITE_OF.flatMap((_, profile) => waiting(profile, 9, profile % 2));
    const wideForever = waiting(1, 60, 2);
    await stage([...hosts, ...wideForever], limits);
    const profileOf = new Map([...hosts, ...wideForever].map((one) => [one.id, one.profile]));
    const running: string[] = [];
    const begun: string[] = [];
    while (begun.length < profileOf.size) {
      const admitted = await byThreeHubs();
      running.push(...admitted);
      begun.push(...admitted);
      expect(running.length, `at work after ${begun.length} began`).toBeGreaterThan(0);
      const count = (of: (profile: number) => boolean) => running.filter((id) => of(profileOf.get(id) ?? -1)).length;
      for (const [profile, limit] of limits.entries())
        expect(count((one) => one === profile)).toBeLessThanOrEqual(limit);
      expect(count((one) => SITE_OF[one] === 0)).toBeLessThanOrEqual(4);
      expect(count((one) => SITE_OF[one] === 1)).toBeLessThanOrEqual(3);
      const ended = running.shift();
      await query("update workflows set status = 'completed' where id = $1", [ended]);
    }
    expect(new Set(begun).size).toBe(begun.length);
    const lastNarrow = begun.findLastIndex((id) => profileOf.get(id) === 0);
    const lastWide = begun.findLastIndex((id) => profileOf.get(id) === 1);
    expect(lastNarrow, "those of the narrow profile do not wait for the end of the wide one's").toBeLessThan(lastWide);
  });
});
