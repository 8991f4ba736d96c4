import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { composeBootstrapScript } from "../../../cloud-init/bootstrap-script.ts";
import { eq } from "../../../hub/db/orm.ts";
import { enrollmentTokens, idempotencyKeys, nodes } from "../../../hub/db/schema/index.ts";
import { bootstrapCommand } from "../../../hub/gateway/bootstrap-script-route.ts";
import { createNode } from "../../../hub/node/create-node.ts";
import { issueEnrollmentToken, tokenHash } from "../../../hub/node/enrollment-tokens.ts";
import { NodeId } from "../../../shared/ids.ts";
import type { ReadinessSignal, ReportedCondition } from "../../../shared/readiness.ts";
import { Secret } from "../../../shared/secret.ts";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { GatewayRig, makeKey } from "../../support/gateway-rig.ts";
import { SocketAgent } from "../../support/socket-agent.ts";
import { until } from "../../support/until.ts";

const NODES = "/api/v1/admin/nodes";

describe("a node of manual mode over the API", () => {
  let api: ApiHarness;
  let sku: string;
  beforeAll(async () => {
    api = await startApi();
    sku = (await seedApi(api)).skuId;
  });
  afterAll(() => api.close());

  const body = (hostname: string, more = {}) => ({
    onboarding_mode: "manual",
    hostname,
    sku_id: sku,
    region_code: "r1",
    ...more,
  });
  const tokenOf = (answer: { body: unknown }): string =>
    /Bearer %s" ([\w-]+)\)/.exec((answer.body as { bootstrap_command: string }).bootstrap_command)?.[1] ?? "";
  const rowOf = async (token: string) =>
    (
      await api.database.database.db
        .select()
        .from(enrollmentTokens)
        .where(eq(enrollmentTokens.tokenSha256, tokenHash(token)))
    )[0];

  it("is created with a command that contains the hub's address, its CA and a token, and the command is stored nowhere", async () => {
    const answer = await api.ask("POST", NODES, body("by-hand-1"));
    expect(answer.status).toBe(201);
    const { node_id, bootstrap_command } = answer.body as { node_id: string; bootstrap_command: string };
    expect(bootstrap_command).toMatch(
      /^printf %s 'umask 077; [^']*curl -sS --fail-with-body --cacert <\(base64 -d <<<[A-Za-z0-9+/=]+\) [^']*' \| bash$/,
    );
    expect(await rowOf(tokenOf(answer))).toMatchObject({ nodeId: node_id, generation: 1, usedAt: null });
    const shown = await api.ask("GET", `${NODES}/${node_id}`);
    expect(shown.body).toMatchObject({ status: "bootstrap_issued", onboarding_mode: "manual", site_id: null });
    expect(JSON.stringify(await api.ask("GET", "/api/v1/admin/events"))).not.toContain(tokenOf(answer));
  });

  it("cannot be created with an Idempotency-Key, because its answer is not stored", async () => {
    const answer = await api.ask("POST", NODES, body("by-hand-2"), { "idempotency-key": "k1" });
    expect(answer.body).toMatchObject({ code: "validation_failed" });
    expect(await api.database.database.db.select().from(idempotencyKeys)).toEqual([]);
  });

  it("has a unique name, even if two requests come at once", async () => {
    const both = await Promise.all([1, 2].map(() => api.ask("POST", NODES, body("by-hand-3"))));
    expect(both.map((one) => one.status).toSorted()).toEqual([201, 409]);
    const refused = both.find((one) => one.status === 409);
    expect(refused?.body).toMatchObject({ code: "conflict" });
  });

  it("gets another command, which revokes the earlier one", async () => {
    const first = await api.ask("POST", NODES, body("by-hand-4"));
    const { node_id } = first.body as { node_id: string };
    const second = await api.ask("POST", `${NODES}/${node_id}/bootstrap-command`, { token_ttl_seconds: 600 });
    expect(second.status).toBe(201);
    expect((await rowOf(tokenOf(first)))?.revokedAt).not.toBeNull();
    expect(await rowOf(tokenOf(second))).toMatchObject({ generation: 2, revokedAt: null });
  });

  it("is refused for an unknown SKU or site, for another mode, and for a node in service", async () => {
    expect(await api.ask("POST", NODES, body("x1", { sku_id: "none" }))).toMatchObject({ status: 404 });
    expect(await api.ask("POST", NODES, body("x2", { site_id: randomUUID() }))).toMatchObject({ status: 404 });
    expect(await api.ask("POST", NODES, body("x3", { onboarding_mode: "maas" }))).toMatchObject({ status: 400 });
    const { node_id } = (await api.ask("POST", NODES, body("x4"))).body as { node_id: NodeId };
    await api.database.database.db.update(nodes).set({ status: "active" }).where(eq(nodes.id, node_id));
    expect(await api.ask("POST", `${NODES}/${node_id}/bootstrap-command`, {})).toMatchObject({ status: 409 });
  });
});

describe("a host of manual mode", () => {
  let rig: GatewayRig;
  beforeAll(async () => {
    rig = await GatewayRig.start({
      bootstrapScript: async ({ nodeId, generation, token }) =>
        composeBootstrapScript({
          nodeId,
          generation,
          hub: {
            agentUrl: "https://localhost:1",
            caBundlePem: rig.ca.caPem,
            taskSigningPublicKey: rig.signer.publicKey,
          },
          enrollmentToken: token.reveal(),
          packages: {},
          renderedAt: 0,
        }),
    });
  });
  afterAll(() => rig.stop());

  async function issued() {
    const id = NodeId.parse(randomUUID());
    const facts = { sku: "s", gpusTotal: 8, regionCode: "r1", onboardingMode: "manual", owner: "admin_api" } as const;
    const token = await rig.inTx(async (tx) => {
      await createNode(tx, { id, hostname: `host-${id.slice(0, 8)}`, siteId: null, ...facts });
      const about = { nodeId: id, workflowId: null, generation: 1, maasSystemId: null, boundMacs: [], ttlSeconds: 600 };
      return (await issueEnrollmentToken(tx, about)).token.reveal();
    });
    return { id, token };
  }
  const statusOf = async (id: NodeId) =>
    (await rig.db.select({ status: nodes.status }).from(nodes).where(eq(nodes.id, id)))[0]?.status;
  const condition = (type: string, status: ReportedCondition["status"]): ReportedCondition => ({
    type,
    status,
    reason: "Test",
    message: "m",
    observed_at: new Date().toISOString(),
  });
  const signal = (...conditions: ReportedCondition[]): ReadinessSignal => ({
    signal_id: randomUUID(),
    generation: 1,
    boot_id: "boot-1",
    conditions,
  });
  async function enrolled() {
    const { id, token } = await issued();
    const key = await makeKey();
    expect((await rig.enroll(await rig.enrollRequest(id, token, key))).status).toBe(200);
    expect(await statusOf(id)).toBe("enrolling");
    const identity = await rig.enrollNode(id, 1);
    return { id, agent: await SocketAgent.connect(rig, identity) };
  }
  async function tell(agent: SocketAgent, ...conditions: ReportedCondition[]): Promise<void> {
    const one = signal(...conditions);
    agent.send({ type: "readiness", signal: one });
    await until(
      "the signal to be taken",
      () =>
        agent.frames.some((frame) => frame.type === "readiness.ack" && frame.signal_id === one.signal_id) || undefined,
    );
  }

  it("downloads its script with its own token only", async () => {
    const { id, token } = await issued();
    const fetchAs = (authorization: string) =>
      rig.ask("GET", "/internal/v1/bootstrap-script", { headers: { authorization } });
    const script = await fetchAs(`Bearer ${token}`);
    expect(script.status).toBe(200);
    expect(script.text).toContain(`NODE_ID='${id}'`);
    for (const wrong of ["", "Bearer x", `Bearer ${token}x`]) expect((await fetchAs(wrong)).status).toBe(401);
    await rig.enroll(await rig.enrollRequest(id, token, await makeKey()));
    expect(await fetchAs(`Bearer ${token}`)).toMatchObject({
      status: 401,
      text: expect.stringContaining("token_used"),
    });
  });

  /** Runs the manual bootstrap command as root would, but with the hub and a folder of the test. */
  async function runCommand(hub: { port: number }, token: string, env: Record<string, string> = {}) {
    const folder = mkdtempSync(join(tmpdir(), "muster-bootstrap-command-"));
    try {
      const url = `https://localhost:${hub.port}`;
      const command = bootstrapCommand(url, rig.ca.caPem, new Secret(token)).replaceAll("/root/", `${folder}/`);
      const { exitCode, all } = await execa("bash", { input: command, all: true, reject: false, env });
      return { exitCode, output: all };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  it("runs its command without showing the token in the process list, during curl and during the script", async () => {
    const tools = mkdtempSync(join(tmpdir(), "muster-curl-"));
    try {
      const everybody = "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$one; echo; done 2>/dev/null";
      const curl = `#!/bin/bash\n${everybody}\nPATH=\${PATH#*:} exec curl "$@"\n`;
      writeFileSync(join(tools, "curl"), curl, { mode: 0o755 });
      const hub = await rig.secondHub({ bootstrapScript: async () => `${everybody}; cat; echo script ran; exit 3` });
      const { token } = await issued();
      const { exitCode, output } = await runCommand(hub, token, { PATH: `${tools}:${process.env["PATH"]}` });
      expect(exitCode, output).toBe(3);
      expect(output).toMatch(/muster-bootstrap[.]sh \n.*script ran$/s);
      expect(output).toMatch(/curl -sS --fail-with-body/);
      expect(output).not.toContain(token);
    } finally {
      rmSync(tools, { recursive: true, force: true });
    }
  });

  it("shows in its command's output what the hub refused, or that curl is missing", async () => {
    const refused = await runCommand(rig.listener, "x".repeat(43));
    expect(refused).toMatchObject({ exitCode: 1, output: expect.stringContaining("token_unknown") });
    const tools = mkdtempSync(join(tmpdir(), "muster-no-curl-"));
    try {
      for (const tool of ["bash", "base64", "rm", "cat"]) {
        const { stdout } = await execa("bash", ["-c", `type -P ${tool}`]);
        symlinkSync(stdout, join(tools, tool));
      }
      const bare = await runCommand(rig.listener, "x".repeat(43), { PATH: tools });
      expect(bare).toMatchObject({ exitCode: 1, output: expect.stringContaining("apt-get install -y curl") });
    } finally {
      rmSync(tools, { recursive: true, force: true });
    }
  });

  it("is told to get another command when its token has expired", async () => {
    const { id, token } = await issued();
    await rig.db
      .update(enrollmentTokens)
      .set({ expiresAt: new Date(0) })
      .where(eq(enrollmentTokens.nodeId, id));
    const answer = await rig.enroll(await rig.enrollRequest(id, token, await makeKey()));
    expect(answer).toMatchObject({ code: "token_expired", text: expect.stringContaining("new bootstrap command") });
  });

  it("is enrolling after enrollment, and active once its agent is healthy and its bootstrap has ended", async () => {
    const { id, agent } = await enrolled();
    await tell(agent, condition("agent.healthy", "False"));
    expect(await statusOf(id)).toBe("enrolling");
    await tell(agent, condition("agent.healthy", "True"), condition("bootstrap.muster", "Unknown"));
    expect(await statusOf(id)).toBe("enrolling");
    await tell(agent, condition("agent.healthy", "True"), condition("bootstrap.muster", "True"));
    expect(await statusOf(id)).toBe("active");
    agent.cut();
  });

  it("is not made active by a report of an earlier generation, and a node of mode maas by no report at all", async () => {
    const { id, agent } = await enrolled();
    await rig.db.update(nodes).set({ generation: 2 }).where(eq(nodes.id, id));
    await tell(agent, condition("agent.healthy", "True"));
    expect(await statusOf(id)).toBe("enrolling");
    agent.cut();
    const other = await SocketAgent.connect(rig, await rig.enrolled("enrolling"));
    await tell(other, condition("agent.healthy", "True"));
    other.cut();
    const maas = await rig.db.select().from(nodes).where(eq(nodes.onboardingMode, "maas"));
    expect(maas.map((node) => node.status)).toEqual(["enrolling"]);
  });
});
