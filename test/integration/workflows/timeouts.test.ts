import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eq } from "../../../hub/db/orm.ts";
import { readDecommission } from "../../../hub/db/queries/decommissions.ts";
import { readOnboarding } from "../../../hub/db/queries/onboardings.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import { type Workflow as WorkflowRow, workflows } from "../../../hub/db/schema/index.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import { ProfileCreate } from "../../../shared/api/profiles.ts";
import type { ProfileId, WorkflowId } from "../../../shared/ids.ts";
import type { DecommissionStage, OnboardingStage } from "../../../shared/workflow-status.ts";
import type { Machine, Plan } from "../../fakes/maas/state/model.ts";
import { STATUS } from "../../fakes/maas/state/statuses.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { type DeployedHost, retiredHost, startRelease } from "../../support/release-world.ts";
import { startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

/**
 * The tests set each time-out of a profile to a few seconds and check that the time-out ends its stage (lifecycle 4.14). During a test of a timeout,
 * the event for which the tested stage waits never comes.
 */
interface Case {
  readonly knob: keyof ProfileCreate;
  readonly stage: OnboardingStage | DecommissionStage;
  readonly what: string;
  readonly ends: readonly [cls: string, code: string, status: string, verb: string];
  readonly profile?: Partial<ProfileCreate>;
  /** How the commissioning and the deploys of the machine end in the simulated region. */
  readonly plan?: Plan;
  readonly seconds?: number;
  /** While the workflow runs, the test calls `keep` repeatedly, so that the stage's reason to wait lasts. */
  readonly keep?: (
    rig: OnboardingRig,
    id: WorkflowId,
    row: WorkflowRow,
    machine: Machine | undefined,
  ) => Promise<void> | void;
  /**
   * Only cases about the release of a retired node's machine have the function `released`. The function `released` changes the machine or its
   * simulated host so that the stage reaches its timeout.
   */
  readonly released?: (rig: OnboardingRig, host: DeployedHost) => void;
  /**
   * Makes each request to MAAS fail whose path contains `path`. A case with `away` runs alone, because its failing requests to MAAS would disturb
   * other cases.
   */
  readonly away?: { readonly path: string };
}
const FIRES_AFTER_SECONDS = 2;
/** The timeout, in seconds, of a stage with real work, which may take seconds on a busy computer. */
const AFTER_WORK_SECONDS = 15;

const agent = (rig: OnboardingRig, id: WorkflowId) => rig.playAgent(id);

const CASES: readonly Case[] = [
  {
    knob: "preflight_timeout_seconds",
    stage: "load_site_config",
    what: "MAAS does not answer the preflight",
    ends: ["upstream_transient", "maas_unavailable", "failed_retryable", "retry"],
    away: { path: "" },
  },
  {
    knob: "discovery_timeout_seconds",
    stage: "create_or_find_in_maas",
    what: "MAAS does not answer while the machine is looked for",
    ends: ["upstream_transient", "maas_unavailable", "failed_retryable", "retry"],
    away: { path: "machines/" },
  },
  {
    knob: "commission_timeout_seconds",
    stage: "wait_for_ready",
    what: "The commissioning does not end",
    ends: ["pxe_discovery_failure", "commissioning_timeout", "failed_manual_intervention", "resume"],
    plan: { commission: ["hang"], deploy: [] },
  },
  {
    knob: "configure_timeout_seconds",
    stage: "configure_storage",
    what: "Storage or network cannot be configured",
    ends: ["upstream_transient", "maas_unavailable", "failed_retryable", "retry"],
    away: { path: "blockdevices" },
  },
  {
    knob: "deploy_timeout_seconds",
    stage: "classify_deploy_failure",
    what: "The deploy does not end; it is aborted",
    ends: ["deploy_cloud_init_failure", "deploy_timeout", "failed_retryable", "rerun"],
    plan: { commission: [], deploy: ["hang"] },
    seconds: AFTER_WORK_SECONDS,
  },
  {
    knob: "hardware_sync_seed_timeout_seconds",
    stage: "ensure_hardware_sync_configured",
    what: "The agent does not connect",
    ends: ["post_deploy_connectivity_failure", "agent_not_connected", "failed_manual_intervention", "resume"],
  },
  {
    knob: "hardware_sync_seed_timeout_seconds",
    stage: "ensure_hardware_sync_configured",
    what: "MAAS gives out no token for the machine",
    ends: ["hardware_sync_failure", "token_not_emitted", "failed_manual_intervention", "resume"],
    seconds: AFTER_WORK_SECONDS,
    keep: async (rig, id, _row, machine) => {
      if (machine !== undefined) machine.token = null;
      await agent(rig, id);
    },
  },
  {
    knob: "hardware_sync_health_timeout_seconds",
    stage: "wait_for_hardware_sync_healthy",
    what: "MAAS sees no sync of the deployed system",
    ends: ["hardware_sync_failure", "sync_unhealthy", "failed_manual_intervention", "resume"],
    keep: async (rig, id, row, machine) => {
      const { last_sync_at_deploy: at } = row.state as { last_sync_at_deploy?: string | null };
      if (machine === undefined || typeof at !== "string") return;
      // No hardware sync of the machine reaches MAAS, whatever the agent does.
      Object.defineProperty(machine, "lastSync", {
        get: () => Date.parse(at),
        set: () => undefined,
        configurable: true,
      });
      await agent(rig, id);
    },
  },
  {
    knob: "agent_enrollment_timeout_seconds",
    stage: "wait_for_agent_enrollment",
    what: "The agent does not enroll and become healthy",
    ends: ["agent_enrollment_failure", "enrollment_timeout", "failed_manual_intervention", "resume"],
    profile: { require_hw_sync: false },
  },
  {
    knob: "release_timeout_seconds",
    stage: "release_maas_node",
    what: "MAAS does not finish the release",
    ends: ["upstream_transient", "release_timeout", "failed_manual_intervention", "resume"],
    // MAAS itself has no timeout for the erasing of a machine's disks (decision M7).
    released: (rig, { machine }) => rig.maas.sim.region.forceStatus(machine, STATUS.disk_erasing),
  },
  {
    knob: "power_off_timeout_seconds",
    stage: "power_off_maas_node",
    what: "The released machine stays on",
    ends: ["bmc_power_failure", "power_action_failed", "failed_manual_intervention", "resume"],
    released: (_rig, { box }) =>
      void Object.defineProperty(box, "power", { get: () => "on", set: () => undefined, configurable: true }),
  },
  {
    knob: "power_off_timeout_seconds",
    stage: "power_off_maas_node",
    what: "Nobody can say whether the released machine is off",
    ends: ["bmc_power_failure", "power_state_unknown", "failed_manual_intervention", "resume"],
    released: (_rig, { machine }) => {
      machine.powerType = "manual";
    },
  },
];

const defaults = ProfileCreate.parse({ name: "x" });
const rowOf = ({ knob, stage, what, ends: [cls, code, status, verb] }: Case): string =>
  `| \`${knob}\` | ${defaults[knob]} | \`${stage}\` | ${what} | \`${cls}/${code}\` | \`${status}\` | ${verb} |`;

describe("the timeouts of a profile", () => {
  let rig: OnboardingRig;
  let runner: WorkflowRunner;
  let boxes = 0;
  beforeAll(async () => {
    rig = await startOnboardingRig({ machines: CASES.length + 1 });
    runner = startRunner(rig);
  });
  afterAll(async () => {
    await runner?.close();
    await rig?.close();
  });

  it("are all covered, and docs/timeouts.md agrees with each case", () => {
    const knobs = Object.keys(ProfileCreate.shape).filter((key) => key.endsWith("_timeout_seconds"));
    expect([...new Set(CASES.map((one) => one.knob))].toSorted()).toEqual(knobs.toSorted());
    const page = readFileSync(new URL("../../../docs/timeouts.md", import.meta.url), "utf8");
    for (const one of CASES) expect(page).toContain(rowOf(one));
  });

  async function startOn(one: Case, box: number, profileId: ProfileId): Promise<WorkflowId> {
    if (one.released === undefined) return (await rig.start(box, profileId)).id;
    const host = await retiredHost(rig, box, profileId);
    one.released(rig, host);
    return (await startRelease(rig, host)).id;
  }

  async function fire(one: Case): Promise<void> {
    boxes += 1;
    const box = boxes;
    const profileId = await rig.addProfile(`p${box}`, {
      ...one.profile,
      [one.knob]: one.seconds ?? FIRES_AFTER_SECONDS,
    });
    if (one.plan !== undefined) rig.maas.sim.region.state.plans[`host-${box}`] = one.plan;
    const id = await startOn(one, box, profileId);
    let armed = false;
    const end = await until(
      `the time-out ${one.knob}`,
      async () => {
        const row = await readWorkflow(rig.services.db, id);
        if (row === null) throw new Error("the row is gone");
        const { maas_system_id: systemId } = row.state as { maas_system_id?: string };
        if (one.away !== undefined && !armed) {
          armed = true;
          rig.maas.sim.faults.add({ match: { path: one.away.path }, kind: "status", code: 503, times: 1e9 });
        }
        await one.keep?.(rig, id, row, systemId === undefined ? undefined : rig.maas.sim.region.findMachine(systemId));
        return row.completedAt !== null ? row : undefined;
      },
      { timeoutMs: 90_000, everyMs: 5 },
    );
    rig.maas.sim.faults.clear();
    const [cls, code, status, verb] = one.ends;
    const read = one.released === undefined ? readOnboarding : readDecommission;
    const told = await read(rig.services.db, id);
    expect(told, end.failureMessage ?? "").toMatchObject({
      status,
      current_stage: one.stage,
      failure_class: cls,
      error_code: code,
      next_verb: verb,
    });
    expect((end.nextAction ?? "").length).toBeGreaterThan(20);
    expect(Object.keys(end.evidence as object).length).toBeGreaterThan(0);
    await rig.services.db.update(workflows).set({ status: "cancelled" }).where(eq(workflows.id, id));
  }

  it.each(CASES.filter((one) => one.away !== undefined))("$knob: $what", fire);

  it("that wait for a host or its machine each fire by their own clock", async () => {
    await Promise.all(CASES.filter((one) => one.away === undefined).map(fire));
  });
});
