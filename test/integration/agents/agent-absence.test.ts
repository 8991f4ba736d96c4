import { afterAll, beforeAll, expect, it } from "vitest";
import { keepConnectionAttempts, type NotedAttempt } from "../../../hub/db/queries/connection-attempts.ts";
import { waitKey, wakeWorkflows } from "../../../hub/db/queries/workflow-wakes.ts";
import { readWorkflow } from "../../../hub/db/queries/workflows.ts";
import { nodeConditions } from "../../../hub/db/schema/index.ts";
import type { WorkflowRunner } from "../../../hub/workflows/engine/runner.ts";
import type { NodeId, WorkflowId } from "../../../shared/ids.ts";
import type { Machine } from "../../fakes/maas/state/model.ts";
import { type OnboardingRig, startOnboardingRig } from "../../support/onboarding-rig.ts";
import { startRunner } from "../../support/rig-hub.ts";
import { until } from "../../support/until.ts";

/** An onboarding whose agent does not connect fails with an error code and evidence for the cause that the hub can see (lifecycle 4.7). */
let rig: OnboardingRig;
let runner: WorkflowRunner;
let boxes = 0;
beforeAll(async () => {
  rig = await startOnboardingRig({ machines: 6 });
  runner = startRunner(rig);
});
afterAll(async () => {
  await runner?.close();
  await rig?.close();
});

const STAGE = "ensure_hardware_sync_configured";
interface Told {
  readonly id: WorkflowId;
  readonly nodeId: NodeId;
  readonly address: string;
  readonly machine: Machine;
  readonly reasons: Set<string>;
}
/**
 * Starts an onboarding, and waits until the onboarding gives up on its agent. While the onboarding waits for the agent, `giveUp` calls `keep`
 * repeatedly, so that `keep` can show the hub why the agent is absent.
 */
async function giveUp(keep: (told: Told) => Promise<void> | void) {
  boxes += 1;
  const profileId = await rig.addProfile(`p${boxes}`, { hardware_sync_seed_timeout_seconds: 3 });
  const { id, nodeId } = await rig.start(boxes, profileId);
  const reasons = new Set<string>();
  const end = await until(
    "the onboarding to give up",
    async () => {
      const row = await readWorkflow(rig.services.db, id);
      const { maas_system_id: systemId, deploy_ip_addresses: [address = ""] = [] } = (row?.state ?? {}) as {
        maas_system_id?: string;
        deploy_ip_addresses?: string[];
      };
      if (row?.waitReason) reasons.add(row.waitReason);
      if (row?.stage === STAGE && row.completedAt === null && systemId !== undefined)
        await keep({ id, nodeId, address, machine: rig.maas.sim.region.machine(systemId), reasons });
      return row?.completedAt ? row : undefined;
    },
    { timeoutMs: 90_000, everyMs: 100 },
  );
  const { failureClass, failureCode, failureMessage, evidence, stage } = end;
  return { failureClass, errorCode: failureCode, failureMessage, evidence, stage, reasons };
}
const sees =
  (kind: NotedAttempt["kind"], detail: string) =>
  async ({ address }: Told) =>
    keepConnectionAttempts(rig.services.db, [{ address, kind, detail, tokenSha256: null, count: 1 }]);

it("an agent that trusts another CA: the error code and the wait reason say so", async () => {
  const end = await giveUp(async (told) => {
    await sees("certificate_untrusted", "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA")(told);
    await rig.services.inTx((tx) => wakeWorkflows(tx, [waitKey.node(told.nodeId)]));
  });
  expect(end).toMatchObject({
    stage: STAGE,
    failureClass: "agent_enrollment_failure",
    errorCode: "agent_distrusts_hub",
    evidence: { waited_for: "agent", seen_from_host: [expect.stringMatching(/unknown CA\) \d+ times, last at/)] },
  });
  expect(end.failureMessage).toContain("does not trust this hub");
  expect([...end.reasons].join("\n")).toContain("; the host does not trust the hub's certificate (unknown CA)");
});

it("a silent agent: no connection was seen, and MAAS's event about the failed first boot is quoted", async () => {
  const end = await giveUp(({ machine }) => {
    rig.maas.sim.region.event(machine, "ERROR", "Node post-installation failure", "'cloudinit' modules for final");
  });
  expect(end).toMatchObject({
    failureClass: "post_deploy_connectivity_failure",
    errorCode: "agent_not_connected",
    evidence: { seen_from_host: [], maas_saw: "'cloudinit' modules for final" },
  });
  expect(end.failureMessage).toMatch(/no connection from the host's addresses was seen \(\d+\./);
  expect(end.failureMessage).toContain("MAAS was told that its first boot failed");
});

it("a refused agent: the error names the code of the refusal", async () => {
  const end = await giveUp(sees("enrollment_refused", "token_used"));
  expect(end).toMatchObject({ failureClass: "agent_enrollment_failure", errorCode: "enrollment_refused" });
  expect(end.failureMessage).toContain("(token_used)");
});

it("an agent with a wrong clock: nothing is seeded before the clock is set", async () => {
  const end = await giveUp(async ({ id, nodeId }) => {
    const said = { status: "False" as const, reason: "ClockSkewed", message: "The host's clock is 3600 s behind" };
    await rig.services.db
      .insert(nodeConditions)
      .values({ nodeId, type: "agent.healthy", ...said, generation: 1, source: "agent", observedAt: new Date() })
      .onConflictDoUpdate({ target: [nodeConditions.nodeId, nodeConditions.type], set: said });
    await rig.playAgent(id);
  });
  expect(end).toMatchObject({
    stage: STAGE,
    failureClass: "agent_enrollment_failure",
    errorCode: "host_clock_wrong",
    evidence: { task_id: null, agent_unhealthy: "ClockSkewed: The host's clock is 3600 s behind" },
  });
  expect([...end.reasons].join("\n")).toContain("The agent to become healthy; the host's clock is wrong");
});

it("an attempt from an unknown address says nothing about this host", async () => {
  const end = await giveUp(async () => {
    await keepConnectionAttempts(rig.services.db, [
      { address: "192.0.2.1", kind: "certificate_untrusted", detail: "x", tokenSha256: null, count: 1 },
    ]);
  });
  expect(end).toMatchObject({ errorCode: "agent_not_connected", evidence: { seen_from_host: [] } });
});
