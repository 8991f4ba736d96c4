import { execFile, spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KEPT_OF_A_NODE } from "../../../hub/db/kept.ts";
import { and, eq, sql } from "../../../hub/db/orm.ts";
import { putReportToken } from "../../../hub/db/queries/report-tokens.ts";
import { nodeConditions, nodes, readinessSignals } from "../../../hub/db/schema/index.ts";
import { tokenHash } from "../../../hub/node/enrollment-tokens.ts";
import type { NodeId } from "../../../shared/ids.ts";
import { createLog } from "../../../shared/log.ts";
import { GatewayRig, makeKey } from "../../support/gateway-rig.ts";

const HOME = "instance_id=i-1&hostname=c01u01";
const finish = (more: object = {}) => ({
  name: "modules-final",
  description: "running modules for final",
  event_type: "finish",
  result: "SUCCESS",
  origin: "cloudinit",
  timestamp: 1_795_210_466.73,
  ...more,
});

const lines: string[] = [];
let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start({ log: createLog("debug", (line) => lines.push(line)) });
});
afterAll(() => rig.stop());

async function reporting(): Promise<{ nodeId: NodeId; token: string }> {
  const nodeId = await rig.addNode("enrolling");
  await rig.db.update(nodes).set({ generation: 1 }).where(eq(nodes.id, nodeId));
  return { nodeId, token: await tokenOf(nodeId, 1) };
}
async function tokenOf(nodeId: NodeId, generation: number): Promise<string> {
  const token = randomBytes(32).toString("hex");
  await rig.inTx((tx) => putReportToken(tx, { nodeId, generation, tokenSha256: tokenHash(token) }));
  return token;
}
const phoneHome = (token: string, raw = HOME) => rig.ask("POST", `/internal/v1/phone-home/${token}`, { raw });
const event = (token: string, body: unknown) => rig.ask("POST", `/internal/v1/cloud-init/${token}`, { body });
async function condition(nodeId: NodeId, type: string) {
  const [row] = await rig.db
    .select()
    .from(nodeConditions)
    .where(and(eq(nodeConditions.nodeId, nodeId), eq(nodeConditions.type, type)));
  return row;
}
const signalsOf = (nodeId: NodeId) =>
  rig.db
    .select()
    .from(readinessSignals)
    .where(eq(readinessSignals.nodeId, nodeId))
    .orderBy(readinessSignals.receivedAt);

describe("cloud-init's reports", () => {
  it("by phone_home set os.booted once, and wake the workflow that waits for the node", async () => {
    const { nodeId, token } = await reporting();
    const waiting = await rig.waitingWorkflow(`node:${nodeId}`);
    expect(await phoneHome(token)).toMatchObject({ status: 204, text: "" });
    const first = await condition(nodeId, "os.booted");
    expect(first).toMatchObject({ status: "True", reason: "PhoneHome", source: "cloud-init", generation: 1 });
    expect(first?.message).toContain("c01u01");
    expect(await waiting.isDue()).toBe(true);
    expect((await phoneHome(token)).status).toBe(204);
    expect(await condition(nodeId, "os.booted")).toEqual(first);
    expect(await signalsOf(nodeId)).toHaveLength(1);
  });

  it("of the last event say how each boot's cloud-init ended; other events change nothing", async () => {
    const { nodeId, token } = await reporting();
    const before = await rig.snapshot();
    for (const other of [finish({ name: "modules-config" }), finish({ event_type: "start" }), {}, [], null, 7])
      expect((await event(token, other)).status).toBe(204);
    expect(await rig.snapshot()).toEqual(before);
    expect((await event(token, finish({ result: "FAIL", description: "a\u0000b\u001b[31m" }))).status).toBe(204);
    expect(await condition(nodeId, "cloud_init.done")).toMatchObject({
      status: "False",
      reason: "Failed",
      source: "cloud-init",
      message: "cloud-init: FAIL, a b [31m",
    });
    expect((await event(token, finish({ timestamp: 1_795_210_999 }))).status).toBe(204);
    expect(await condition(nodeId, "cloud_init.done")).toMatchObject({ status: "True", reason: "Succeeded" });
  });

  it("keep no report token that an error message repeats", async () => {
    const { nodeId, token } = await reporting();
    expect((await event(token, finish({ description: `POST to /cloud-init/${token} failed` }))).status).toBe(204);
    const message = "cloud-init: SUCCESS, POST to /cloud-init/[redacted] failed";
    expect(await condition(nodeId, "cloud_init.done")).toMatchObject({ message });
    expect(JSON.stringify(await signalsOf(nodeId))).not.toContain(token);
  });

  it("of an older generation are stored and not applied", async () => {
    const { nodeId, token } = await reporting();
    await rig.db.update(nodes).set({ generation: 2 }).where(eq(nodes.id, nodeId));
    expect((await phoneHome(token)).status).toBe(204);
    expect(await condition(nodeId, "os.booted")).toBeUndefined();
    expect(await signalsOf(nodeId)).toMatchObject([{ generation: 1, applied: false, source: "cloud-init" }]);
    expect((await phoneHome(await tokenOf(nodeId, 2))).status).toBe(204);
    expect(await condition(nodeId, "os.booted")).toMatchObject({ generation: 2, status: "True" });
  });

  it("are refused with a replaced token, a deleted node's token, an enrollment token, or an unknown token", async () => {
    const { nodeId, token } = await reporting();
    const enrollment = await rig.issueToken(nodeId);
    const newer = await tokenOf(nodeId, 1);
    const gone = await reporting();
    await rig.db.update(nodes).set({ status: "deleted" }).where(eq(nodes.id, gone.nodeId));
    const before = await rig.snapshot();
    for (const bad of [token, enrollment, gone.token, "x".repeat(64), "short", "%00".repeat(20), `${newer}%2f`]) {
      expect(await phoneHome(bad)).toMatchObject({ status: 404, code: "not_found" });
      expect(await event(bad, finish())).toMatchObject({ status: 404, code: "not_found" });
    }
    expect(await rig.snapshot()).toEqual(before);
    expect((await phoneHome(newer)).status).toBe(204);
  });

  it("are stored up to a limit per node, without pushing out signals of other sources", async () => {
    const { nodeId, token } = await reporting();
    const old = { nodeId, generation: 1, conditions: [], applied: true };
    await rig.db.insert(readinessSignals).values([
      { ...old, id: randomUUID(), source: "agent", receivedAt: new Date(0) },
      ...Array.from({ length: KEPT_OF_A_NODE.signals + 5 }, (_, at) => ({
        ...old,
        id: randomUUID(),
        source: "cloud-init",
        receivedAt: new Date(at * 1000),
      })),
    ]);
    expect((await phoneHome(token)).status).toBe(204);
    const kept = await signalsOf(nodeId);
    expect(kept.filter((one) => one.source === "agent")).toHaveLength(1);
    const reports = kept.filter((one) => one.source === "cloud-init");
    expect(reports).toHaveLength(KEPT_OF_A_NODE.signals);
    expect(reports[0]?.receivedAt).toEqual(new Date(6_000));
    expect(await condition(nodeId, "os.booted")).toMatchObject({ status: "True" });
  });

  it("grant nothing else: a report token does not enroll", async () => {
    const { nodeId, token } = await reporting();
    const answer = await rig.enroll(await rig.enrollRequest(nodeId, token, await makeKey()));
    expect(answer).toMatchObject({ status: 401, code: "token_unknown" });
  });

  it("are refused when they are no JSON, too deeply nested or too large, and nothing is written", async () => {
    const { token } = await reporting();
    const before = await rig.snapshot();
    const raw = (text: string) => rig.ask("POST", `/internal/v1/cloud-init/${token}`, { raw: text });
    expect(await raw("{")).toMatchObject({ status: 400, code: "malformed_json" });
    expect([204, 400]).toContain((await raw("[".repeat(30_000) + "]".repeat(30_000))).status);
    expect(await raw(`"${"x".repeat(70_000)}"`)).toMatchObject({ status: 413, code: "body_too_large" });
    expect(await phoneHome(token, "x".repeat(70_000))).toMatchObject({ status: 413, code: "body_too_large" });
    expect(await rig.snapshot()).toEqual(before);
  });

  it("leave their token in no log and no answer, even when the hub fails or the path is wrong", async () => {
    const seen: string[] = [];
    const own = await GatewayRig.start({ log: createLog("debug", (line) => seen.push(line)) });
    await own.stopAfter(async () => {
      const token = randomBytes(32).toString("base64url");
      const answers = [
        await own.ask("POST", `/internal/v1/phone-home/${token}`, { raw: HOME }),
        await own.ask("GET", `/internal/v1/phone-home/${token}`),
        await own.ask("POST", `/internal/v1/cloud-init/${token}/more`, { raw: "{}" }),
        await own.ask("POST", `/phone-home/${token}`, { raw: HOME }),
      ];
      await own.db.execute(sql`alter table report_tokens rename to report_tokens_gone`);
      answers.push(await own.ask("POST", `/internal/v1/cloud-init/${token}`, { raw: "{}" }));
      expect(answers.map((answer) => answer.status)).toEqual([404, 404, 404, 404, 500]);
      expect(seen.some((line) => line.includes("agent request failed"))).toBe(true);
      expect(JSON.stringify(answers) + seen.join("")).not.toContain(token);
    });
  });
});

const python = spawnSync("/usr/bin/python3", ["-c", "import cloudinit.reporting.handlers, requests"]).status === 0;
if (!python) process.stderr.write("SKIPPED: cloud-init's own client is not installed (Debian package cloud-init)\n");

const CLIENT = `
import logging, sys
from types import SimpleNamespace
from cloudinit import reporting
from cloudinit.reporting import events
from cloudinit.config import cc_phone_home
base, token, folder = sys.argv[1:]
name = SimpleNamespace(hostname="c01u01")
paths = SimpleNamespace(get_ipath_cur=lambda _: folder, get_cpath=lambda _: folder)
cloud = SimpleNamespace(get_instance_id=lambda: "i-1", get_hostname=lambda fqdn=False: name, paths=paths)
config = {"phone_home": {"url": f"{base}/internal/v1/phone-home/{token}", "post": ["instance_id", "hostname"], "tries": 1}}
arguments = ("phone-home", config, cloud, logging.getLogger("test"), [])
cc_phone_home.handle(*arguments[: cc_phone_home.handle.__code__.co_argcount - 1], [])
reporting.update_configuration({"muster": {"type": "webhook", "endpoint": f"{base}/internal/v1/cloud-init/{token}", "timeout": 5}})
with events.ReportEventStack("modules-final", "running modules for final") as stack:
    with events.ReportEventStack("config-scripts-user", "running config-scripts-user", parent=stack) as child:
        child.result = events.status.FAIL
reporting.flush_events()
`;

describe("cloud-init itself", () => {
  it.skipIf(!python)("posts reports that the hub accepts, if its trust store has the hub's CA", async () => {
    const { nodeId, token } = await reporting();
    const folder = mkdtempSync(join(tmpdir(), "muster-cloud-init-"));
    try {
      writeFileSync(join(folder, "ca.pem"), rig.ca.caPem);
      const post = (env: Record<string, string>) =>
        new Promise<string>((resolve, reject) => {
          const args = ["-c", CLIENT, `https://127.0.0.1:${rig.listener.port}`, token, folder];
          execFile("/usr/bin/python3", args, { env: { PATH: "/usr/bin:/bin", ...env } }, (error, _out, stderr) =>
            error === null ? resolve(stderr) : reject(error),
          );
        });
      // No system trusts the hub's own CA by default, and cloud-init has no setting for a CA.
      await post({});
      expect(await signalsOf(nodeId)).toEqual([]);
      await post({ REQUESTS_CA_BUNDLE: join(folder, "ca.pem") });
      expect(await condition(nodeId, "os.booted")).toMatchObject({ status: "True", reason: "PhoneHome" });
      expect(await condition(nodeId, "cloud_init.done")).toMatchObject({ status: "False", reason: "Failed" });
      expect(lines.join("")).not.toContain(token);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
