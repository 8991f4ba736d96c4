import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { and, eq, like, sql } from "../../hub/db/orm.ts";
import { maasSiteWatches, nodeEvents, nodes, tasks } from "../../hub/db/schema/index.ts";
import { Site } from "../../shared/api/sites.ts";
import { type Child, startChild } from "../support/child.ts";
import { type FleetNode, FleetRig } from "../support/fleet-rig.ts";
import { HubApi } from "../support/hub-api.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { until } from "../support/until.ts";

const NODES = 60;
/** The number of changes after which the reconciler waits for the test's advisory lock, so that the test can kill the hub. */
const BEFORE_THE_GATE = 20;
const GATE = "1, 1";

interface Hub {
  readonly id: string;
  readonly child: Child;
  readonly api: HubApi;
}

describe("two hubs that watch and reconcile one region, one of them killed during a pass", () => {
  const folder = mkdtempSync(join(memoryFolder(), "muster-hubs-drift-"));
  const hubs: Hub[] = [];
  const made: FleetNode[] = [];
  let fleet: FleetRig;

  beforeAll(async () => {
    fleet = await FleetRig.start(NODES);
    for (let n = 0; n < NODES; n += 1) made.push(await fleet.nodeInService());
    for (const name of ["one", "other"]) hubs.push(await startHub(name));
    const site = `/api/v1/admin/maas-sites/${fleet.siteId}/credentials`;
    await hubs[0]?.api.call(Site, "POST", site, { maas_token: fleet.rig.maas.apiKey });
    await until("all nodes to be as they should be", async () => {
      const rows = await Promise.all(made.map(({ nodeId }) => fleet.node(nodeId)));
      return rows.every((row) => row.maasOwner !== null && row.host !== null && !row.driftDetected) ? true : undefined;
    });
    await fleet.db.execute(
      sql.raw(`
        create function pass_the_gate() returns trigger language plpgsql as $$ begin
          if (select count(*) from nodes where host like '10.98.%') >= ${BEFORE_THE_GATE} then
            perform pg_advisory_xact_lock_shared(${GATE});
          end if;
          return new;
        end $$;
        create trigger pass_the_gate before update of host on nodes for each row execute function pass_the_gate();`),
    );
  });
  afterAll(async () => {
    for (const { child } of hubs) await child.stop();
    await fleet?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function startHub(name: string): Promise<Hub> {
    const child = startChild({
      name,
      script: "hub/main.ts",
      env: {
        DATABASE_URL: fleet.rig.test.url,
        MUSTER_STATE_DIR: join(folder, name),
        MUSTER_SHARED_DIR: join(folder, "shared"),
        MUSTER_HTTP_PORT: "0",
        MUSTER_AGENT_HOST: "127.0.0.1",
        MUSTER_AGENT_PORT: "0",
        MUSTER_AGENT_URL: "https://127.0.0.1:1",
        MUSTER_WATCH_INTERVAL_MS: "200",
        MUSTER_DATABASE_POOL_SIZE: "6",
      },
      logFile: join(folder, `${name}.log`),
    });
    const { listening } = z.object({ listening: z.string() }).parse(await child.ready);
    const api = new HubApi(listening, readFileSync(join(folder, "shared/admin-token"), "utf8").trim());
    const { hub_id } = await api.call(z.object({ hub_id: z.string() }), "GET", "/api/v1/admin/status");
    return { id: hub_id, child, api };
  }
  const watcherNow = async (): Promise<Hub | undefined> => {
    const [watch] = await fleet.db
      .select({ owner: maasSiteWatches.leaseOwner })
      .from(maasSiteWatches)
      .where(eq(maasSiteWatches.siteId, fleet.siteId));
    return hubs.find(({ id }) => id === watch?.owner);
  };
  const driftTold = async (nodeId: string) =>
    (await fleet.events(`nodes/${nodeId}`)).flatMap(({ type, data }) =>
      type === "node.drift.detected" || type === "node.drift.resolved" ? [`${type} ${data["rule"]}`] : [],
    );
  const atTheGate = async () =>
    (
      await fleet.db.execute(
        `select from pg_locks l join pg_database d on d.oid = l.database
          where d.datname = current_database() and l.locktype = 'advisory' and not l.granted and (l.classid, l.objid) = (${GATE})`,
      )
    ).rows.length > 0;
  const moved = async () =>
    (await fleet.db.select({ id: nodes.id }).from(nodes).where(like(nodes.host, "10.98.%"))).length;

  it("each node is judged by its machine's state, acted on once and reported once", async () => {
    const before = new Map<string, number>();
    for (const { nodeId } of made) before.set(nodeId, (await driftTold(nodeId)).length);
    const victim = await until("a hub to watch the region", watcherNow);
    const gate = await fleet.rig.test.database.pool.connect();
    await gate.query(`select pg_advisory_lock(${GATE})`);
    const { region } = fleet.rig.maas.sim;
    const released = made.slice(0, 4);
    const unsynced = made.slice(4, 7);
    made.forEach(({ machine }, n) => {
      fleet.address(machine, `10.98.0.${n + 1}`);
      if (n < 4) region.forceStatus(machine, 4);
      else if (n < 7) machine.enableHwSync = false;
      region.event(machine, "DEBUG", "Node changed", "by somebody else");
    });
    region.changed();
    await until("the pass to be in its midst", async () => ((await atTheGate()) ? true : undefined));
    victim.child.kill("SIGKILL");
    await victim.child.gone;
    expect(await moved()).toBeGreaterThan(0);
    expect(await moved()).toBeLessThanOrEqual(BEFORE_THE_GATE);
    gate.release(true);
    const survivor = await until("the other hub to watch the region", async () => {
      const now = await watcherNow();
      return now === undefined || now === victim ? undefined : now;
    });
    await until("all nodes to be judged", async () => ((await moved()) === NODES - 4 ? true : undefined));
    await until("MAAS to be told to sync again", async () =>
      unsynced.every(({ machine }) => machine.enableHwSync) ? true : undefined,
    );
    const path = "/api/v1/admin/reconciliation/run";
    await survivor.api.call(z.unknown(), "POST", path, { site_id: fleet.siteId });
    await until("a whole pass", async () => {
      const [watch] = await fleet.db.select().from(maasSiteWatches);
      const due = await fleet.db.execute("select from node_maas_state where reconcile_due_at is not null");
      return watch?.sweepRequestedAt === null && due.rows.length === 0 ? true : undefined;
    });

    for (const { nodeId, hostname, machine } of made) {
      const node = await fleet.node(nodeId);
      const told = (await driftTold(nodeId)).slice(before.get(nodeId));
      if (released.some((one) => one.nodeId === nodeId)) {
        expect({ hostname, status: node.status, told }).toEqual({
          hostname,
          status: "quarantined",
          told: ["node.drift.detected released_outside"],
        });
        const moves = await fleet.db
          .select()
          .from(nodeEvents)
          .where(and(eq(nodeEvents.nodeId, nodeId), eq(nodeEvents.toStatus, "quarantined")));
        expect(moves).toHaveLength(1);
        continue;
      }
      expect({ hostname, status: node.status, host: node.host }).toEqual({
        hostname,
        status: "active",
        host: machine.interfaces.find((nic) => nic.id === machine.bootInterfaceId)?.links[0]?.ipAddress,
      });
      const isUnsynced = unsynced.some((one) => one.nodeId === nodeId);
      expect({ hostname, told: isUnsynced ? told.slice(0, 1) : told }).toEqual({
        hostname,
        told: isUnsynced
          ? ["node.drift.detected hardware_sync_stopped"]
          : ["node.drift.detected host_changed", "node.drift.resolved host_changed"],
      });
      const seeds = await fleet.db
        .select()
        .from(tasks)
        .where(and(eq(tasks.nodeId, nodeId), eq(tasks.type, "node.hw_sync_reseed")));
      expect(seeds).toHaveLength(isUnsynced ? 1 : 0);
    }
  });
});
