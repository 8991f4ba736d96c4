import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq, sql } from "../../hub/db/orm.ts";
import { listStageEvents } from "../../hub/db/queries/workflow-events.ts";
import { enrollmentTokens, maasRoceAssignments, type Workflow as WorkflowRow } from "../../hub/db/schema/index.ts";
import { workflowsOf } from "../../hub/workflows/registry.ts";
import type { ProfileCreate } from "../../shared/api/profiles.ts";
import type { OnboardingStage } from "../../shared/workflow-status.ts";
import type { Fault } from "../fakes/maas/http/faults.ts";
import type { Machine, Plan } from "../fakes/maas/state/model.ts";
import { STATUS } from "../fakes/maas/state/statuses.ts";
import { type OnboardingRig, startOnboardingRig } from "../support/onboarding-rig.ts";
import { Driver, plainly } from "./drive.ts";
import { countedOf, machineOf } from "./scenarios.ts";

/** Tests the rows of the table in lifecycle 4.6, as corrected by later decisions: tries, the failure at the end, and the compensation. */
interface Row {
  readonly stage: OnboardingStage;
  readonly mode: string;
  readonly profile?: Partial<ProfileCreate>;
  readonly plan?: Plan;
  readonly fault?: Pick<Fault, "match" | "kind"> & Partial<Fault>;
  readonly before?: (machine: Machine | undefined, row: WorkflowRow) => unknown;
  readonly ends:
    | { readonly tries: number; readonly failure: string; readonly status: string; readonly machine: number | null }
    /** If a case has `goesOn`, its fault causes no failure, and the onboarding continues to the end. */
    | { readonly goesOn: true; readonly tries: number };
  readonly undone?: boolean;
  readonly agent?: boolean;
}
const DOWN = { kind: "status", code: 503, body: "Service Unavailable" } as const;

let rig: OnboardingRig;
let kinds: ReturnType<typeof workflowsOf>;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 40 });
  kinds = workflowsOf(rig.services);
});
afterAll(() => rig?.close());
const db = () => rig.services.db;

/** The expected end of a workflow after an outage of MAAS, which the engine does not count as a try of the stage. */
const transient = (machine: number | null) =>
  ({ tries: 1, failure: "upstream_transient/maas_unavailable", status: "failed_retryable", machine }) as const;
const ROWS: readonly Row[] = [
  { stage: "load_site_config", mode: "MAAS is away", fault: { match: {}, ...DOWN }, ends: transient(null) },
  { stage: "create_or_find_in_maas", mode: "MAAS is away", fault: { match: {}, ...DOWN }, ends: transient(null) },
  { stage: "commission_node", mode: "MAAS is away", fault: { match: {}, ...DOWN }, ends: transient(STATUS.new) },
  {
    stage: "wait_for_ready",
    mode: "the commissioning fails",
    plan: { commission: ["fail"], deploy: [] },
    ends: {
      tries: 1,
      failure: "pxe_discovery_failure/commissioning_failed",
      status: "failed_manual_intervention",
      machine: STATUS.failed_commissioning,
    },
  },
  {
    stage: "commission_node",
    mode: "the BMC refuses the login: asked once, since BMCs lock accounts",
    before: () => {
      for (const box of rig.maas.sim.region.state.hardware.slice(boxes - 1, boxes)) box.bmcPass = "another";
    },
    ends: {
      tries: 1,
      failure: "bmc_power_failure/bmc_login_refused",
      status: "failed_manual_intervention",
      machine: STATUS.new,
    },
  },
  {
    stage: "wait_for_ready",
    mode: "the hardware tests fail",
    before: (machine) => {
      if (machine !== undefined) rig.maas.sim.region.forceStatus(machine, STATUS.failed_testing);
    },
    ends: {
      tries: 1,
      failure: "hardware_mismatch/testing_failed",
      status: "failed_manual_intervention",
      machine: STATUS.failed_testing,
    },
  },
  {
    stage: "configure_storage",
    mode: "there is no boot disk",
    profile: { boot_disk_pattern: "no such model" },
    ends: {
      tries: 1,
      failure: "hardware_mismatch/boss_disk_missing",
      status: "failed_manual_intervention",
      machine: STATUS.ready,
    },
  },
  {
    stage: "apply_roce_phase2",
    mode: "an interface is not there",
    before: (_machine, row) =>
      db()
        .update(maasRoceAssignments)
        .set({ interface: "ens99f9" })
        .where(sql`${maasRoceAssignments.hostname} = (select hostname from node_onboardings where onboarding_id = ${row.id}::uuid)
          and ${maasRoceAssignments.ipv4Cidr} like '172.30.%'`),
    ends: { goesOn: true, tries: 1 },
  },
  {
    stage: "ensure_pxe_interface_auto",
    mode: "MAAS is away",
    fault: { match: {}, ...DOWN },
    ends: transient(STATUS.ready),
  },
  {
    stage: "ensure_pxe_interface_auto",
    mode: "the interface is not there, and the profile is strict",
    profile: { node_pxe_iface: "eno9", strict_pxe_preflight: true },
    ends: {
      tries: 1,
      failure: "hardware_mismatch/pxe_interface_missing",
      status: "failed_manual_intervention",
      machine: STATUS.ready,
    },
  },
  {
    stage: "ensure_pxe_interface_auto",
    mode: "the interface is not there, and the profile is not strict",
    profile: { node_pxe_iface: "eno9", strict_pxe_preflight: false },
    ends: { goesOn: true, tries: 1 },
  },
  {
    stage: "render_cloud_init",
    mode: "the secret store is away",
    before: () => {
      rig.secrets.awayFor = 1e6;
    },
    ends: {
      tries: 1,
      failure: "upstream_transient/secret_store_unavailable",
      status: "failed_retryable",
      machine: STATUS.ready,
    },
  },
  {
    stage: "deploy_via_maas",
    mode: "MAAS fails at the call",
    fault: { match: { op: "deploy" }, ...DOWN },
    ends: transient(STATUS.ready),
  },
  {
    stage: "deploy_via_maas",
    mode: "MAAS rejects the deploy",
    fault: {
      match: { op: "deploy" },
      kind: "status",
      code: 400,
      body: JSON.stringify({ distro_series: ["is not a valid distro_series"] }),
    },
    ends: {
      tries: 1,
      failure: "input_config_error/maas_rejected_input",
      status: "failed_manual_intervention",
      machine: STATUS.ready,
    },
  },
  {
    stage: "classify_deploy_failure",
    mode: "the install fails: released to Ready",
    plan: { commission: [], deploy: ["install_failure"] },
    undone: true,
    ends: {
      tries: 1,
      failure: "deploy_cloud_init_failure/deploy_failed",
      status: "failed_retryable",
      machine: STATUS.ready,
    },
  },
  {
    stage: "classify_deploy_failure",
    mode: "MAAS's events cannot be read: as any other failed deploy",
    plan: { commission: [], deploy: ["datasource_failure"] },
    fault: { match: { path: "events" }, ...DOWN },
    undone: true,
    ends: {
      tries: 1,
      failure: "deploy_cloud_init_failure/deploy_failed",
      status: "failed_retryable",
      machine: STATUS.ready,
    },
  },
  {
    stage: "recover_for_datasource_retry",
    mode: "the datasource stays away after the retries that the profile allows",
    plan: {
      commission: [],
      deploy: ["datasource_failure", "datasource_failure", "datasource_failure", "datasource_failure"],
    },
    undone: true,
    ends: {
      tries: 1,
      failure: "deploy_cloud_init_failure/datasource_retry_exhausted",
      status: "failed_manual_intervention",
      machine: STATUS.ready,
    },
  },
  {
    stage: "recover_for_datasource_retry",
    mode: "the profile allows no retry",
    profile: { enable_deploy_retry_on_datasource_failure: false },
    plan: { commission: [], deploy: ["datasource_failure"] },
    undone: true,
    ends: {
      tries: 1,
      failure: "deploy_cloud_init_failure/datasource_failure",
      status: "failed_retryable",
      machine: STATUS.ready,
    },
  },
  {
    stage: "recover_for_datasource_retry",
    mode: "the release fails",
    plan: { commission: [], deploy: ["datasource_failure"] },
    fault: { match: { op: "release" }, ...DOWN },
    ends: { ...transient(STATUS.failed_deployment), status: "failed_manual_intervention" },
  },
  {
    stage: "ensure_hardware_sync_configured",
    mode: "MAAS is away: the host is left deployed",
    agent: true,
    fault: { match: {}, ...DOWN },
    ends: transient(STATUS.deployed),
  },
];

describe("the policy of a stage", () => {
  it.each(ROWS)("$stage: $mode", async (one) => {
    boxes += 1;
    const box = boxes;
    const profileId = await rig.addProfile(`policy-${box}`, { max_deploy_retry_attempts: 1, ...one.profile });
    if (one.plan !== undefined) rig.maas.sim.region.state.plans[`host-${box}`] = one.plan;
    const { id } = await rig.start(box, profileId);
    const driver = new Driver(rig.test, kinds, (onboarding) => rig.playAgent(onboarding));
    let armed = false;
    const end = await driver.drive(id, (row) => async (look) => {
      if (row.stage === one.stage && !armed) {
        armed = true;
        await one.before?.(machineOf(rig, row), row);
        if (one.fault !== undefined) rig.maas.sim.faults.add({ times: 1e6, ...one.fault });
      }
      await plainly(look);
    });
    rig.maas.sim.faults.clear();
    rig.secrets.awayFor = 0;
    const events = await listStageEvents(db(), id);
    const tries = 1 + events.filter((event) => event.stage === one.stage && event.status === "retrying").length;
    const story = await driver.story(id);
    expect(tries, story).toBe(one.ends.tries);
    if ("goesOn" in one.ends) return void expect(end.status, story).toBe("completed");
    expect({ status: end.status, failure: `${end.failureClass}/${end.failureCode}`, stage: end.stage }, story).toEqual({
      status: one.ends.status,
      failure: one.ends.failure,
      stage: one.stage,
    });
    expect(machineOf(rig, end)?.status ?? null).toBe(one.ends.machine);
    expect(
      events.some((event) => event.status === "compensated"),
      story,
    ).toBe(one.undone ?? false);
    const { deploy, release } = countedOf(rig, end);
    if (one.undone) expect(deploy - release, "a failed deploy is taken back").toBe(0);
  });

  it("wait_for_agent_enrollment: an expired token is extended at most twice, and the host stays deployed", async () => {
    boxes += 1;
    const profileId = await rig.addProfile(`policy-${boxes}`, { require_hw_sync: false });
    const { id, nodeId } = await rig.start(boxes, profileId);
    let looks = 0;
    const driver = new Driver(rig.test, kinds, async () => undefined);
    const expire = () =>
      db()
        .update(enrollmentTokens)
        .set({ expiresAt: sql`now() - interval '1 second'` })
        .where(eq(enrollmentTokens.nodeId, nodeId));
    const lives: boolean[] = [];
    const end = await driver.drive(id, (row) => async (look) => {
      if (row.stage !== "wait_for_agent_enrollment") return plainly(look);
      looks += 1;
      if (looks > 5) {
        await driver.verb(id, "mark_manual_intervention");
        return plainly(look);
      }
      await expire();
      await plainly(await driver.claim(id));
      const [token] = await db().select().from(enrollmentTokens).where(eq(enrollmentTokens.nodeId, nodeId));
      lives.push((token?.expiresAt.getTime() ?? 0) > Date.now());
    });
    expect(lives).toEqual([true, true, false, false, false]);
    expect(machineOf(rig, end)).toMatchObject({ status: STATUS.deployed });
    expect(countedOf(rig, end)).toMatchObject({ deploy: 1, release: 0 });
  });
});
