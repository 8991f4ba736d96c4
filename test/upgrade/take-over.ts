import { randomUUID } from "node:crypto";
import { sql } from "../../hub/db/orm.ts";
import { startWatcher } from "../../hub/watcher/watcher.ts";
import type { NodeId, ProfileId, SiteId, WorkflowId } from "../../shared/ids.ts";
import type { TaskInput } from "../../shared/tasks/index.ts";
import { startMaasSimulator } from "../fakes/maas/simulator.ts";
import { giveMachine, type Stagecraft, type Subject } from "../properties/scenarios.ts";
import { createTestDatabase } from "../support/database.ts";
import { fillMemory } from "../support/gpu-memory-agent.ts";
import { quietLog } from "../support/log.ts";
import { MemorySecrets } from "../support/memory-secrets.ts";
import { type OnboardingRig, rigOn } from "../support/onboarding-rig.ts";
import { startRunner } from "../support/rig-hub.ts";
import { certify } from "../support/signing-agent.ts";
import { loadRecord, regionOf } from "./load-record.ts";
import type { UpgradeRecord } from "./upgrade-record.ts";

/** What an old version left, in the hands of the present version. */
export interface TakenOver extends Pick<Stagecraft, "rig" | "close"> {
  readonly subjects: ReadonlyMap<WorkflowId, Subject>;
  /** Starts two hubs of the present version, which `close` stops. */
  start(): void;
}

/** Loads the database, the simulated region and the secrets that the old version left. */
export async function takeOver(record: UpgradeRecord): Promise<TakenOver> {
  const test = await createTestDatabase();
  await loadRecord(test, record);
  const maas = await startMaasSimulator({ state: regionOf(record), speed: 1e5 });
  const secrets = new MemorySecrets();
  for (const [path, secret] of Object.entries(record.secrets)) await secrets.write(path, secret);
  const { rows } = await test.database.db.execute<{ siteId: SiteId; profileId: ProfileId }>(sql`
    update maas_sites s set api_base_url = ${maas.url} from maas_site_profiles p
    where p.site_id = s.id and p.name = 'gpu' returning s.id as "siteId", p.id as "profileId"`);
  const [site] = rows;
  if (site === undefined) throw new Error(`the record of ${record.version} has no site`);
  const rig = await rigOn({ test, maas, secrets, ...site });
  const subjects = await subjectsOf(rig);
  for (const subject of subjects.values()) giveMachine(subject);
  await agentsContinue(rig);
  const hubs: { close(): Promise<void> }[] = [];
  return {
    rig,
    subjects,
    start: () => {
      const watch = { pollIntervalMs: 50, sweepIntervalMs: 5000, log: quietLog, hubId: randomUUID() };
      hubs.push(startRunner(rig), startRunner(rig));
      hubs.push(startWatcher({ ...test.database, clientFor: rig.services.maas, ...watch }));
    },
    close: async () => {
      for (const hub of hubs) await hub.close();
      await rig.close();
    },
  };
}

async function subjectsOf(rig: OnboardingRig): Promise<Map<WorkflowId, Subject>> {
  const { rows } = await rig.services.db.execute<{
    id: WorkflowId;
    nodeId: NodeId;
    hostname: string;
    systemId: string;
  }>(sql`
    select onboarding_id as id, node_id as "nodeId", hostname, null as "systemId" from node_onboardings
    union all
    select d.decommission_id, d.node_id, n.hostname,
      (select max(o.maas_system_id) from node_onboardings o where o.node_id = d.node_id)
    from node_decommissions d join nodes n on n.id = d.node_id`);
  return new Map(rows.map(({ systemId, ...about }) => [about.id, systemId === null ? about : { ...about, systemId }]));
}

/**
 * The simulated agents continue in the test's process. Each agent that had a key of its own gets a new key, because a record contains no private keys.
 * Each agent holds the GPU memory that it has filled.
 */
async function agentsContinue(rig: OnboardingRig): Promise<void> {
  const { db, inTx } = rig.services;
  const agents = await db.execute<{ id: NodeId }>(sql`
    select distinct n.id from nodes n join node_certificates c on c.node_id = n.id and c.generation = n.generation
    where c.revoked_at is null and c.first_used_at is not null`);
  for (const { id } of agents.rows) await inTx((tx) => certify(tx, id));
  const filled = await db.execute<{ id: string; input: TaskInput<"node.gpu_fill"> }>(
    sql`select id, input from tasks where type = 'node.gpu_fill' and state = 'succeeded'`,
  );
  for (const { id, input } of filled.rows) fillMemory(id, input);
}
