import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { DecommissionCreated, DecommissionDetail } from "../../shared/api/decommissions.ts";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";
import { HubProblem } from "../support/hub-api.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { demoHosts, listRoce, seedSite } from "../support/seed-site.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";

describe("one host from its BMC's address to active", () => {
  const stateDir = newHubFolder("muster-host-");
  const [host] = demoHosts(1);
  let rig: Rig;

  beforeAll(async () => {
    rig = await startRig({ stateDir, machines: 1, speed: 50, hubEnv: { MUSTER_LOG_LEVEL: "debug" } });
  });
  afterAll(async () => {
    await rig?.stop();
    rmSync(stateDir, { recursive: true, force: true });
  });

  it("runs all stages in order, leaves a schedulable node with inventory and conditions, and refuses a second onboarding", async () => {
    if (host === undefined) throw new Error("no host");
    const site = await seedSite(rig.api, rig.maas, [host]);
    expect(await listRoce(rig.api, site.siteId)).toHaveLength(8);
    const selectors = { site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId };
    const created = await rig.api.onboard({ ...selectors, ...host });

    const second = await rig.api.onboard({ ...selectors, ...host }).catch((error: unknown) => error);
    expect(second).toBeInstanceOf(HubProblem);
    expect((second as HubProblem).problem.code).toBe("onboarding_exists");

    const done = await until(
      "the onboarding is completed",
      async () => {
        const onboarding = await rig.api.onboarding(created.onboarding_id);
        if (onboarding.status.startsWith("failed"))
          throw new Error(`${onboarding.error_code}: ${onboarding.error_message}`);
        return onboarding.status === "completed" ? onboarding : undefined;
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 200 },
    );
    const ended = done.events.filter((event) => event.status === "succeeded" || event.status === "skipped");
    expect(new Set(ended.map((event) => event.stage))).toEqual(new Set(ONBOARDING_STAGES));
    expect(
      ended
        .filter((event) => event.status === "skipped")
        .map((event) => event.stage)
        .sort(),
    ).toEqual(["classify_deploy_failure", "recover_for_datasource_retry"]);

    const node = await until("the agent has reported the baseline", async () => {
      const now = await rig.api.node(created.node_id);
      return now.schedulable ? now : undefined;
    });
    expect(node).toMatchObject({ status: "active", schedulable: true, hostname: host.hostname, gpus_total: 8 });
    expect(node.inventory).not.toBeNull();
    const conditions = Object.fromEntries(node.conditions.map((condition) => [condition.type, condition.status]));
    expect(conditions).toMatchObject({ "agent.connected": "True", "agent.healthy": "True", "os.booted": "True" });
    expect(node.maas?.status).toBe("Deployed");
  });

  it("sends an operator's task to the agent and returns its result", async () => {
    const [node] = await rig.api.nodes();
    const Task = z.looseObject({ id: z.string(), state: z.string(), result: z.unknown() });
    const queued = await rig.api.call(Task, "POST", `/api/v1/admin/nodes/${node?.id}/tasks`, {
      type: "node.heartbeat_check",
      input: { nonce: "n-1" },
    });
    const done = await until("the task has ended", async () => {
      const task = await rig.api.call(Task, "GET", `/api/v1/admin/tasks/${queued.id}`);
      return task.state === "succeeded" || task.state === "failed" ? task : undefined;
    });
    expect(done).toMatchObject({ state: "succeeded", result: { nonce: "n-1" } });
  });

  it("drains and reactivates the host, drains it again across a hub's kill, and removes it from the host and the hub", async () => {
    const [node] = await rig.api.nodes();
    if (node === undefined) throw new Error("no node");
    const hostFolder = join(stateDir, "hosts", readdirSync(join(stateDir, "hosts"))[0] ?? "");
    const nologin = () => existsSync(join(hostFolder, "etc/nologin"));
    const operate = (what: "drain" | "remove", body: object) =>
      rig.api.call(DecommissionCreated, "POST", `/api/v1/admin/nodes/${node.id}/${what}`, { reason: "old", ...body });
    const over = (id: string) =>
      until(
        `decommission ${id} to end`,
        async () => {
          const path = `/api/v1/admin/decommissions/${id}`;
          const now = await rig.api.call(DecommissionDetail, "GET", path).catch(() => undefined);
          if (now?.status.startsWith("failed")) throw new Error(`${now.error_code}: ${now.error_message}`);
          return now?.status === "completed" ? now : undefined;
        },
        { timeoutMs: LONG_WAIT_MS, everyMs: 100 },
      );

    mkdirSync(join(hostFolder, "run/sessions"), { recursive: true });
    writeFileSync(join(hostFolder, "run/sessions/c1"), "1000 ann seat0");
    const first = await operate("drain", { deadline_seconds: 0, force: true });
    expect((await over(first.decommission_id)).events.map((event) => event.stage)).toContain("drain_node");
    expect(await rig.api.node(node.id)).toMatchObject({ status: "retired", schedulable: false });
    expect(nologin()).toBe(true);
    expect(readdirSync(join(hostFolder, "run/sessions")), "sessions that are left are ended").toEqual([]);

    await rig.api.call(z.unknown(), "POST", `/api/v1/admin/nodes/${node.id}/activate`, { reason: "needed again" });
    await until("people may log in again", async () => (nologin() ? undefined : true));
    expect(await rig.api.node(node.id)).toMatchObject({ status: "active" });

    const second = await operate("drain", { deadline_seconds: 0, force: true });
    process.kill(rig.hubPid(), "SIGKILL");
    await rig.hubReady();
    await over(second.decommission_id);

    const removed = await operate("remove", {});
    await over(removed.decommission_id);
    expect(await rig.api.node(node.id)).toMatchObject({ status: "deleted" });
    await until("the agent has removed itself", async () =>
      existsSync(join(hostFolder, "etc/muster")) || existsSync(join(hostFolder, "var/lib/muster")) ? undefined : true,
    );
    expect(nologin()).toBe(false);
    await expect(operate("drain", { deadline_seconds: 0, force: true })).rejects.toThrow(/never used again/);
  });
});
