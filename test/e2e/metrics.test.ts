import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { COUNTED } from "../../hub/metrics/families.ts";
import { DecommissionCreated, DecommissionDetail } from "../../shared/api/decommissions.ts";
import type { NodeSummary } from "../../shared/api/nodes.ts";
import { OnboardingDetail } from "../../shared/api/onboardings.ts";
import { agentPids } from "../support/agent-processes.ts";
import { freePort } from "../support/free-port.ts";
import { knownSecrets } from "../support/known-secrets.ts";
import { memoryFolder } from "../support/memory-folder.ts";
import { hasPromtool } from "../support/promtool.ts";
import { type Rig, startRig } from "../support/rig.ts";
import { type Sample, samplesOf } from "../support/scrape.ts";
import { demoHosts, seedSite } from "../support/seed-site.ts";
import { type ReceivedSpan, TraceCollector } from "../support/trace-collector.ts";
import { LONG_WAIT_MS, until } from "../support/until.ts";
import { newSecret } from "../support/webhook-receiver.ts";

const HOSTS = demoHosts(2);
const TOKEN = "a-token-for-the-metrics-alone";
const TRACES_TOKEN = "a-token-for-the-collector-of-traces";

/** What a healthy hub does not count in a few minutes, with the test that counts it. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  muster_workflow_leases_lost_total: "test/integration/metrics/counted.test.ts",
  muster_workflow_failures_total: "test/integration/metrics/counted.test.ts",
  muster_budget_exceeded_total: "test/integration/metrics/counted.test.ts",
  muster_probes_total: "test/integration/api/probes.test.ts",
  muster_probe_delay_seconds: "test/integration/api/probes.test.ts",
  muster_metrics_collect_errors_total: "test/integration/metrics/exposition.test.ts",
};

/** Sends a request without a client certificate to the agent listener. */
async function askAgentListener(stateDir: string, path: string): Promise<void> {
  const { agent } = z
    .looseObject({ agent: z.int() })
    .parse(JSON.parse(readFileSync(join(stateDir, "ports.json"), "utf8")));
  await new Promise<void>((done, failed) => {
    get({ host: "127.0.0.1", port: agent, path, rejectUnauthorized: false }, (answer) => {
      answer.resume().on("end", done);
    }).on("error", failed);
  });
}

const textOf = ({ name, status, attributes }: ReceivedSpan): unknown => ({ name, status, attributes });

/** What promtool says about the hub's own metrics; it also finds fault with names that prom-client gave to metrics of Node.js. */
const lintOf = (text: string): string[] => text.split("\n").filter((line) => /\bmuster_|error/.test(line));

describe("the metrics and traces of a hub that onboards two hosts and drains one", () => {
  const stateDir = mkdtempSync(join(memoryFolder(), "muster-metrics-"));
  const tokenFile = join(stateDir, "metrics-token");
  let rig: Rig;
  let port: number;
  let collector: TraceCollector;

  beforeAll(async () => {
    port = await freePort();
    collector = await TraceCollector.start(TRACES_TOKEN);
    const headersFile = join(stateDir, "traces-headers");
    writeFileSync(headersFile, `authorization: Bearer ${TRACES_TOKEN}\n`);
    writeFileSync(tokenFile, `${TOKEN}\n`);
    chmodSync(tokenFile, 0o600);
    rig = await startRig({
      stateDir,
      machines: HOSTS.length,
      speed: 30,
      hubEnv: {
        MUSTER_METRICS_PORT: String(port),
        MUSTER_METRICS_TOKEN_FILE: tokenFile,
        MUSTER_TRACES_URL: collector.url,
        MUSTER_TRACES_HEADERS_FILE: headersFile,
      },
    });
  });
  afterAll(async () => {
    await rig?.stop();
    collector?.close();
    rmSync(stateDir, { recursive: true, force: true });
  });

  const ask = (url: string, token: string | null, accept = "text/plain") =>
    fetch(url, { headers: { accept, ...(token === null ? {} : { authorization: `Bearer ${token}` }) } });
  const scrape = async (): Promise<Sample[]> =>
    samplesOf(await (await ask(`http://127.0.0.1:${port}/metrics`, TOKEN)).text());

  it("are for nobody without a token", async () => {
    const own = `http://127.0.0.1:${port}/metrics`;
    const statuses = async (url: string) => [(await ask(url, null)).status, (await ask(url, "wrong".repeat(5))).status];
    expect(await statuses(own)).toEqual([401, 401]);
    expect(await statuses(`${rig.apiUrl}/metrics`)).toEqual([401, 401]);
    expect((await ask(`http://127.0.0.1:${port}/api/v1/openapi.json`, TOKEN)).status).toBe(404);
    const open = await ask(own, TOKEN, "application/openmetrics-text;version=1.0.0");
    expect([open.status, open.headers.get("content-type")]).toEqual([200, expect.stringContaining("openmetrics")]);
  });

  it("count everything that the hub counts", async () => {
    const seen = new Set<string>();
    const look = async (): Promise<void> => {
      for (const { name, value } of await scrape()) if (value > 0) seen.add(name.replace(/_(count|sum|bucket)$/, ""));
    };
    const site = await seedSite(rig.api, rig.maas, HOSTS);
    await rig.api.call(z.unknown(), "POST", "/api/v1/admin/webhooks", {
      url: `http://127.0.0.1:${await freePort()}/hook`,
      types: ["node.*"],
      secret: newSecret(),
    });
    await rig.api.onboardBatch({ site_id: site.siteId, profile_id: site.profileId, sku_id: site.skuId, nodes: HOSTS });
    const active = (): Promise<NodeSummary[]> =>
      until(
        "both hosts are active",
        async () => {
          const nodes = (await rig.api.nodes()).filter((node) => node.status === "active");
          return nodes.length === HOSTS.length ? nodes : undefined;
        },
        { timeoutMs: LONG_WAIT_MS, everyMs: 500 },
      );
    const [first] = await active();
    await look();
    await until("the collector has the traces of both onboardings", () =>
      collector.spans.filter(({ name }) => name === "onboard").length === HOSTS.length ? true : undefined,
    );
    // The restarted hub claims nothing that another hub held, and the agents connect to it again.
    const start = await rig.hubs[0]?.keepDown();
    start?.();
    await rig.hubReady();
    await rig.api.call(z.unknown(), "POST", `/api/v1/admin/nodes/${first?.id}/drain`, { reason: "the rack moves" });
    await until("the hub serves the metrics again", () => scrape(), { timeoutMs: LONG_WAIT_MS });
    await rig.api.nodes();
    await ask(`${rig.apiUrl}/api/v1/admin/nodes`, "wrong".repeat(5));
    await askAgentListener(stateDir, "/nothing-here");
    const agents = await until("an agent is connected again", async () => {
      const connected = (await scrape()).some(({ name, value }) => name === "muster_agents_connected" && value > 0);
      return connected ? agentPids(stateDir) : undefined;
    });
    for (const pid of agents) process.kill(pid, "SIGKILL");
    const lacking = (): string[] =>
      COUNTED.map(({ name }) => name).filter((name) => !seen.has(name) && !(name in ELSEWHERE));
    await until(
      "everything has been counted",
      async () => {
        await look();
        return lacking().length === 0 || undefined;
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 500 },
    ).catch((error: unknown) => {
      expect(lacking(), String(error)).toEqual([]);
    });
    if (hasPromtool) {
      const input = await (await ask(`http://127.0.0.1:${port}/metrics`, TOKEN)).text();
      const checked = await execa("promtool", ["check", "metrics"], { input, reject: false, all: true });
      expect(lintOf(checked.all)).toEqual([]);
    }
    const now = samplesOf(
      await (await ask(`${rig.apiUrl}/metrics`, readFileSync(rig.adminTokenFile, "utf8").trim())).text(),
    );
    // Whether the two nodes have one status depends on how far the drain is.
    const counted = now.filter(({ name, labels }) => name === "muster_nodes" && labels["site"] === "demo-dc1");
    expect(counted.reduce((sum, { value }) => sum + value, 0)).toBe(HOSTS.length);
    expect(
      now.some((sample) =>
        Object.values(sample.labels).some((value) => HOSTS.some(({ hostname }) => value.includes(hostname))),
      ),
    ).toBe(false);
  });

  it("trace each onboarding with its stages and its calls to MAAS", async () => {
    for (const { onboarding_id: id } of await rig.api.onboardings()) {
      const spans = collector.ofTrace(id);
      const [root, ...roots] = spans.filter(({ parentSpanId }) => (parentSpanId ?? "") === "");
      expect(roots).toEqual([]);
      expect(root).toMatchObject({
        name: "onboard",
        kind: 1,
        attributes: { "muster.workflow.status": "completed" },
      });
      const stages = spans.filter(({ parentSpanId }) => parentSpanId === root?.spanId);
      const { events } = await rig.api.call(OnboardingDetail, "GET", `/api/v1/admin/onboardings/${id}`);
      const ended = events.filter(({ status }) => !["started", "waiting", "retrying"].includes(status));
      expect(stages.map(({ name }) => name).toSorted()).toEqual(
        ended.map(({ stage }) => `onboard ${stage}`).toSorted(),
      );
      const calls = spans.filter((span) => span !== root && !stages.includes(span));
      const parents = new Map(stages.map((stage) => [stage.spanId, stage]));
      expect(calls.filter(({ parentSpanId }) => !parents.has(parentSpanId ?? ""))).toEqual([]);
      expect(calls.every(({ kind }) => kind === 3)).toBe(true);
      const deploys = calls.filter(({ parentSpanId }) =>
        parents.get(parentSpanId ?? "")?.name.endsWith("deploy_via_maas"),
      );
      expect(deploys.map(({ attributes }) => attributes["peer.service"])).toContain("maas");
      expect(calls.map(({ attributes }) => attributes["peer.service"])).toContain("secret_store");
      for (const { startTimeUnixNano: start, endTimeUnixNano: end } of stages) {
        expect(start >= (root?.startTimeUnixNano ?? 0n) && end >= start).toBe(true);
        expect(end <= (root?.endTimeUnixNano ?? 0n)).toBe(true);
      }
    }
    expect(collector.resources[0]).toMatchObject({ "service.name": "muster-hub" });
    // The restarted hub has an id of its own, and sends the spans of the drain's stages within seconds.
    const starts = (): number => new Set(collector.resources.map((one) => one["service.instance.id"])).size;
    await until("both starts of the hub to have sent spans", () => starts() === 2 || undefined);
    expect(collector.refused).toBe(0);
    const secrets = knownSecrets();
    secrets.add("the admin token", readFileSync(rig.adminTokenFile, "utf8").trim());
    expect(secrets.leaksIn("the traces", JSON.stringify([collector.resources, collector.spans.map(textOf)]))).toEqual(
      [],
    );
  });

  it("say in the hub's log that the collector takes nothing, and stop nothing", async () => {
    collector.away = true;
    const [node] = (await rig.api.nodes()).filter(({ status }) => status === "active");
    const { decommission_id } = await rig.api.call(
      DecommissionCreated,
      "POST",
      `/api/v1/admin/nodes/${node?.id}/drain`,
      {
        reason: "without a collector",
        agent_wait_seconds: 0,
      },
    );
    await until("the drain to end or to fail", async () => {
      const drain = await rig.api.call(DecommissionDetail, "GET", `/api/v1/admin/decommissions/${decommission_id}`);
      return drain.status === "completed" || drain.status.startsWith("failed") || undefined;
    });
    await until(
      "the hub's log to tell of it",
      () =>
        readFileSync(join(stateDir, "hub.log"), "utf8").includes("the collector of traces did not take spans") ||
        undefined,
    );
    expect(readFileSync(join(stateDir, "hub.log"), "utf8")).not.toContain(TRACES_TOKEN);
  });
});
