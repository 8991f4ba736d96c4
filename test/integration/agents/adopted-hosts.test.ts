import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseDocument } from "yaml";
import { eq } from "../../../hub/db/orm.ts";
import { domainEvents, enrollmentTokens, nodeBaselines, nodes } from "../../../hub/db/schema/index.ts";
import { sweepBaselines } from "../../../hub/node/baseline.ts";
import { tokenHash } from "../../../hub/node/enrollment-tokens.ts";
import type { AdoptionCommands } from "../../../shared/api/adoptions.ts";
import { NodeId, WorkflowId } from "../../../shared/ids.ts";
import type { Machine } from "../../fakes/maas/state/model.ts";
import { AdoptionWorld } from "../../support/adoption-world.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { enrollHost, inventoryOf, macOf, tellHealthy, tokenIn } from "../../support/running-host.ts";
import { until } from "../../support/until.ts";

const ADMIN = "/api/v1/admin";
let world: AdoptionWorld;
let rig: GatewayRig;
beforeAll(async () => {
  world = await AdoptionWorld.start();
  rig = await GatewayRig.start({}, world.api.database);
});
afterAll(async () => {
  await rig?.listener.close();
  await world?.close();
});

/** Reads the cells of each line of a CSV text by RFC 4180. */
function readCsv(text: string): string[][] {
  const lines: string[][] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  let line: string[] = [];
  for (const [, quoted, bare = "", end] of text.matchAll(cell)) {
    line.push(quoted === undefined ? bare : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    lines.push(line);
    line = [];
  }
  return lines;
}

interface Adopted {
  readonly id: NodeId;
  readonly machine: Machine;
}
async function adopt(hostname: string): Promise<Adopted> {
  const machine = world.deployed(hostname);
  await world.poll();
  return { id: NodeId.parse(await world.adopted(machine)), machine };
}
async function commandOf(id: NodeId): Promise<string> {
  const answer = await world.order({ node_ids: [id] });
  expect(answer.status).toBe(201);
  return tokenIn((answer.body as AdoptionCommands).commands[0]?.bootstrap_command ?? "");
}
const identityOf = async (id: NodeId) =>
  (await world.node(id)).conditions.find((one: { type: string }) => one.type === "adoption.identity");
const statusOf = async (id: NodeId) => (await world.node(id)).status;

const hostRuns = (id: NodeId, token: string, macs: string[], bootId: string = randomUUID()) =>
  enrollHost(rig, { id, token, macs, bootId });
const inventory = (bootId: string, uuid: string, ...macs: string[]) => inventoryOf({ bootId, uuid, macs });
const generationOf = async (id: NodeId) => (await world.node(id)).generation as number;

describe("the host of an adopted node", () => {
  it("comes into service when its agent enrolls by the command and shows that it is the machine", async () => {
    const { id, machine } = await adopt("enrolls-1");
    const { agent, bootId } = await hostRuns(id, await commandOf(id), [macOf(machine)]);
    if (agent === null) throw new Error("not enrolled");
    expect(await statusOf(id)).toBe("enrolling");
    expect(await identityOf(id)).toMatchObject({ status: "Unknown", reason: "AgentEnrolled" });
    tellHealthy(agent, await generationOf(id), bootId);
    agent.send({ type: "inventory", inventory: inventory(bootId, machine.hardwareUuid ?? "", macOf(machine)) });
    await until("the node to be active", async () => ((await statusOf(id)) === "active" ? true : undefined));
    const node = await world.node(id);
    expect(node.conditions).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "adoption.identity", status: "True", reason: "SameHost" }),
        expect.objectContaining({ type: "adoption.gpus", status: "True" }),
        expect.objectContaining({ type: "hardware.sku", class: "barring", status: "True", reason: "AsInSku" }),
      ]),
    );
    expect(node).toMatchObject({
      schedulable: false,
      unschedulable_reasons: [expect.stringContaining("nobody knows who used it. Reimage")],
      adoption: { past_unknown: true, next_action: expect.stringContaining("Reimage") },
    });
    agent.cut();
  });

  it("comes into service in the other order of reports too", async () => {
    const { id, machine } = await adopt("enrolls-2");
    const { agent, bootId } = await hostRuns(id, await commandOf(id), [macOf(machine)]);
    if (agent === null) throw new Error("not enrolled");
    agent.send({ type: "inventory", inventory: inventory(bootId, machine.hardwareUuid ?? "", macOf(machine)) });
    tellHealthy(agent, await generationOf(id), bootId);
    await until("the node to be active", async () => ((await statusOf(id)) === "active" ? true : undefined));
    agent.cut();
  });

  it("cannot enroll if it has none of the machine's MAC addresses, and the token stays valid for the right host", async () => {
    const { id, machine } = await adopt("foreign-1");
    const token = await commandOf(id);
    const foreign = await hostRuns(id, token, ["b8:59:9f:ee:ff:ff"]);
    expect(foreign.answer).toMatchObject({ status: 403, code: "token_of_another_node" });
    expect(await statusOf(id)).toBe("bootstrap_issued");
    const right = await hostRuns(id, token, [macOf(machine)]);
    expect(right.answer.status).toBe(200);
    right.agent?.cut();
  });

  it("is refused if its inventory is of another host: its certificate is void, and the right host comes in by a new command", async () => {
    const { id, machine } = await adopt("foreign-2");
    const { agent, bootId } = await hostRuns(id, await commandOf(id), [macOf(machine)]);
    if (agent === null) throw new Error("not enrolled");
    tellHealthy(agent, await generationOf(id), bootId);
    agent.send({ type: "inventory", inventory: inventory(bootId, randomUUID(), macOf(machine)) });
    const identity = await until("the host to be refused", async () => {
      const said = await identityOf(id);
      return said?.status === "False" ? said : undefined;
    });
    expect(identity).toMatchObject({ reason: "OtherHost", message: expect.stringContaining("hardware UUID") });
    await until("the agent to be cut off", () => agent.closed ?? undefined);
    expect(await world.node(id)).toMatchObject({
      status: "enrolling",
      adoption: { next_action: expect.stringContaining("order a new command") },
    });
    const told = await rig.db.select().from(domainEvents).where(eq(domainEvents.type, "node.adoption.refused"));
    expect(told.map((one) => one.subject)).toEqual([`nodes/${id}`]);

    const waiting = (await world.order()).body as AdoptionCommands;
    const again = waiting.commands.find((one) => one.node_id === id);
    const right = await hostRuns(id, tokenIn(again?.bootstrap_command ?? ""), [macOf(machine)]);
    if (right.agent === null) throw new Error("not enrolled");
    tellHealthy(right.agent, await generationOf(id), right.bootId);
    right.agent.send({
      type: "inventory",
      inventory: inventory(right.bootId, machine.hardwareUuid ?? "", macOf(machine)),
    });
    await until("the node to be active", async () => ((await statusOf(id)) === "active" ? true : undefined));
    right.agent.cut();
  });

  it("proves again that it is the machine when a node in service is enrolled again, and another host is refused", async () => {
    const { id, machine } = await adopt("again-1");
    const first = await hostRuns(id, await commandOf(id), [macOf(machine)]);
    if (first.agent === null) throw new Error("not enrolled");
    const right = (bootId: string) => inventory(bootId, machine.hardwareUuid ?? "", macOf(machine));
    tellHealthy(first.agent, await generationOf(id), first.bootId);
    first.agent.send({ type: "inventory", inventory: right(first.bootId) });
    await until("the node to be active", async () => ((await statusOf(id)) === "active" ? true : undefined));
    first.agent.cut();
    const runAgain = async () => {
      const answer = await world.api.ask("POST", `${ADMIN}/nodes/${id}/re-enroll`, { reason: "a test" });
      const { agent, bootId } = await hostRuns(id, tokenIn(answer.body.bootstrap_command), [macOf(machine)]);
      if (agent === null) throw new Error("not enrolled");
      expect(await identityOf(id)).toMatchObject({ status: "Unknown", reason: "AgentEnrolled" });
      expect((await world.node(id)).inventory).toBeNull();
      return { agent, bootId };
    };

    const wrong = await runAgain();
    wrong.agent.send({ type: "inventory", inventory: inventory(wrong.bootId, randomUUID(), macOf(machine)) });
    await until("the host to be refused", async () => ((await identityOf(id)).status === "False" ? true : undefined));
    await until("the agent to be cut off", () => wrong.agent.closed ?? undefined);
    expect(await world.node(id)).toMatchObject({
      schedulable: false,
      adoption: { next_action: expect.stringContaining("re-enroll-node") },
    });

    const again = await runAgain();
    again.agent.send({ type: "inventory", inventory: right(again.bootId) });
    await until("the host to prove it", async () => ((await identityOf(id)).status === "True" ? true : undefined));
    expect(await statusOf(id)).toBe("active");
    // A later inventory of a host that has proved it refuses nobody, for example after the repair of a network card.
    again.agent.send({ type: "inventory", inventory: inventory(again.bootId, randomUUID(), "b8:59:9f:ee:ee:ee") });
    await again.agent.settled();
    expect(await identityOf(id)).toMatchObject({ status: "True" });
    again.agent.cut();

    // An operation that only holds the node while the host enrolls by a command proves nothing. The hub judges the host when the operation is over.
    const { pool } = world.api.database.database;
    const held = await world.api.ask("POST", `${ADMIN}/nodes/${id}/re-enroll`, { reason: "a test" });
    const operation = randomUUID();
    await pool.query("insert into workflow_subjects (subject, workflow_id) values ($1, $2)", [`node:${id}`, operation]);
    const during = await hostRuns(id, tokenIn(held.body.bootstrap_command), [macOf(machine)]);
    if (during.agent === null) throw new Error("not enrolled");
    expect(await identityOf(id)).toMatchObject({ status: "Unknown", reason: "AgentEnrolled" });
    during.agent.send({ type: "inventory", inventory: inventory(during.bootId, randomUUID(), macOf(machine)) });
    await during.agent.settled();
    expect(await identityOf(id)).toMatchObject({ status: "Unknown", reason: "AgentEnrolled" });
    await pool.query("delete from workflow_subjects where workflow_id = $1", [operation]);
    tellHealthy(during.agent, await generationOf(id), during.bootId);
    await until("the host to be refused", async () => ((await identityOf(id)).status === "False" ? true : undefined));

    // An operation that makes the token, such as a reimage, has deployed the machine itself.
    await rig.enrollNode(id, (await generationOf(id)) + 1, WorkflowId.parse(randomUUID()));
    expect((await identityOf(id)).generation).toBe((await generationOf(id)) - 1);
  });

  it("is not judged by the inventory of another boot", async () => {
    const { id, machine } = await adopt("boots-1");
    const { agent, bootId } = await hostRuns(id, await commandOf(id), [macOf(machine)]);
    if (agent === null) throw new Error("not enrolled");
    agent.send({ type: "inventory", inventory: inventory("another-boot", randomUUID(), "b8:59:9f:ee:00:ff") });
    tellHealthy(agent, await generationOf(id), bootId);
    agent.send({ type: "inventory", inventory: inventory(bootId, machine.hardwareUuid ?? "", macOf(machine)) });
    await until("the node to be active", async () => ((await statusOf(id)) === "active" ? true : undefined));
    agent.cut();
  });

  it("does not come into service while its machine is not Deployed", async () => {
    const { id, machine } = await adopt("released-1");
    const token = await commandOf(id);
    world.status(machine, "releasing");
    await world.poll();
    const { agent, bootId } = await hostRuns(id, token, [macOf(machine)]);
    if (agent === null) throw new Error("not enrolled");
    tellHealthy(agent, await generationOf(id), bootId);
    agent.send({ type: "inventory", inventory: inventory(bootId, machine.hardwareUuid ?? "", macOf(machine)) });
    await until("the hub to say so", async () =>
      (await identityOf(id))?.reason === "MachineNotDeployed" ? true : undefined,
    );
    expect(await statusOf(id)).toBe("enrolling");

    // The row of a machine that an older hub wrote has no details.
    world.status(machine, "deployed");
    await world.poll();
    const { pool } = world.api.database.database;
    await pool.query("update maas_machines set details = '{}' where system_id = $1", [machine.systemId]);
    agent.send({ type: "inventory", inventory: inventory(bootId, machine.hardwareUuid ?? "", macOf(machine)) });
    const said = await until("the hub to say so", async () => {
      const now = await identityOf(id);
      return now?.reason === "MachineNotRead" ? now : undefined;
    });
    expect(said.message).toContain("Run the reconciliation of the site");
    agent.cut();
  });

  it("gets no baseline before a reimage has replaced its system", async () => {
    const { id, machine } = await adopt("baseline-1");
    const { agent, bootId } = await hostRuns(id, await commandOf(id), [macOf(machine)]);
    if (agent === null) throw new Error("not enrolled");
    tellHealthy(agent, await generationOf(id), bootId);
    agent.send({ type: "inventory", inventory: inventory(bootId, machine.hardwareUuid ?? "", macOf(machine)) });
    await until("the node to be active", async () => ((await statusOf(id)) === "active" ? true : undefined));
    const baselines = () => rig.db.select().from(nodeBaselines).where(eq(nodeBaselines.nodeId, id));
    await rig.inTx((tx) => sweepBaselines(tx));
    expect(await baselines()).toEqual([]);
    const asked = await world.api.ask("POST", `${ADMIN}/nodes/${id}/baseline`, { reason: "it looks clean" });
    expect(asked.problem).toMatchObject({ code: "conflict", detail: expect.stringContaining("Reimage the node") });
    const allocation = { node_id: id, tenant: "acme", login_user: "ann", ssh_keys: ["ssh-ed25519 AAAA"] };
    expect((await world.api.ask("POST", `${ADMIN}/allocations`, allocation)).status).not.toBe(201);
    // The row says that Muster has released the machine, as the reimage's stage release_maas_node writes it.
    const workflow = randomUUID();
    const { pool } = world.api.database.database;
    await pool.query(
      "insert into workflows (id, kind, status, stage, input, state) values ($1, 'decommission:reimage', 'completed', 'enable_node', '{}', '{}')",
      [workflow],
    );
    await pool.query(
      `insert into node_decommissions (decommission_id, node_id, site_id, hostname, mode, reason, prior_status, released_generation)
         values ($1, $2, $3, 'baseline-1', 'reimage', 'first', 'active', 1)`,
      [workflow, id, world.siteId],
    );
    await rig.inTx((tx) => sweepBaselines(tx));
    expect(await baselines()).toHaveLength(1);
    expect((await world.node(id)).adoption).toMatchObject({ past_unknown: false, next_action: null });
    agent.cut();
  });
});

describe("the commands for adopted hosts", () => {
  it("are one for each host, each with its own token, and are stored nowhere", async () => {
    const both = [await adopt("order-1"), await adopt("order-2")];
    const { commands, left_out } = (await world.order()).body as AdoptionCommands;
    const own = commands.filter((one) => both.some(({ id }) => id === one.node_id));
    expect(own.map((one) => one.hostname).toSorted()).toEqual(["order-1", "order-2"]);
    expect(left_out).toBe(0);
    const tokens = own.map((one) => tokenIn(one.bootstrap_command));
    expect(new Set(tokens).size).toBe(2);
    const rows = await rig.db
      .select()
      .from(enrollmentTokens)
      .where(eq(enrollmentTokens.tokenSha256, tokenHash(tokens[0] ?? "")));
    expect(rows).toMatchObject([{ nodeId: own[0]?.node_id, usedAt: null, revokedAt: null }]);
    expect(rows[0]?.boundMacs).toHaveLength(1);
    const other = both.find(({ id }) => id !== own[0]?.node_id);
    if (other === undefined) throw new Error("no other node");
    const wrong = await hostRuns(other.id, tokens[0] ?? "", [macOf(other.machine)]);
    expect(wrong.answer.code).toBe("token_of_another_node");
    // A second order for all leaves hosts out that have a valid command.
    expect(((await world.order()).body as AdoptionCommands).commands).toEqual([]);
  });

  it("become void by a new command for the same host, and when they expire", async () => {
    const { id, machine } = await adopt("void-1");
    const first = await commandOf(id);
    const second = await commandOf(id);
    expect((await hostRuns(id, first, [macOf(machine)])).answer.code).toBe("token_unknown");
    await rig.db
      .update(enrollmentTokens)
      .set({ expiresAt: new Date(0) })
      .where(eq(enrollmentTokens.tokenSha256, tokenHash(second)));
    expect((await hostRuns(id, second, [macOf(machine)])).answer.code).toBe("token_expired");
    const single = await world.api.ask("POST", `${ADMIN}/nodes/${id}/bootstrap-command`, {});
    expect(single.status).toBe(201);
    const third = await hostRuns(id, tokenIn(single.body.bootstrap_command), [macOf(machine)]);
    expect(third.answer.status).toBe(200);
    third.agent?.cut();
  });

  it("are not given to nodes that cannot use them, and then to none of the named nodes", async () => {
    const [well, gone] = [await adopt("able-1"), await adopt("able-2")];
    world.status(gone.machine, "ready");
    await world.poll();
    const refused = await world.order({ node_ids: [well.id, gone.id, randomUUID()] });
    expect(refused.problem).toMatchObject({
      code: "conflict",
      errors: [{ pointer: "/node_ids/1" }, { pointer: "/node_ids/2" }],
    });
    const all = (await world.order()).body as AdoptionCommands;
    expect(all.left_out).toBe(1);
    expect(all.commands.map((one) => one.hostname)).toContain("able-1");
    expect(all.commands.map((one) => one.hostname)).not.toContain("able-2");
    expect(JSON.stringify(await world.order({}, "").then(({ problem }) => problem))).not.toContain("conflict");
    const keyed = await world.api.ask(
      "POST",
      `${ADMIN}/maas-sites/${world.siteId}/adoption-commands`,
      {},
      { "idempotency-key": "k" },
    );
    expect(keyed.problem.code).toBe("validation_failed");
  });

  it("come as CSV that no spreadsheet runs as a formula", async () => {
    const { id } = await adopt("csv-1");
    for (const [index, host] of ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", 'a"b,c'].entries()) {
      await rig.db.update(nodes).set({ host }).where(eq(nodes.id, id));
      const text = (await world.order({ node_ids: [id] }, "/csv")).body as unknown as string;
      const [head = [], line = [], ...more] = readCsv(text);
      expect(more).toEqual([]);
      const cells = Object.fromEntries(head.map((name, column) => [name, line[column]]));
      expect(cells).toMatchObject({ hostname: "csv-1", node_id: id, address: index < 5 ? `'${host}` : host });
      expect(tokenIn(cells["command"] ?? "")).toHaveLength(43);
      expect(line.filter((one) => /^[=+\-@\t\r]/.test(one))).toEqual([]);
    }
  });

  it("come as an Ansible inventory that a YAML parser reads", async () => {
    const { id } = await adopt("yaml-1");
    const answer = await world.order({ node_ids: [id] }, "/ansible");
    expect(answer.headers.get("content-type")).toBe("application/yaml; charset=utf-8");
    const tag = { tag: "!unsafe", resolve: (text: string) => text };
    const document = parseDocument(answer.body as unknown as string, { customTags: [tag] });
    expect(document.errors).toEqual([]);
    const { hosts } = document.toJS().all.children.muster_adoption;
    expect(Object.keys(hosts)).toEqual(["yaml-1"]);
    expect(hosts["yaml-1"]).toMatchObject({ ansible_host: expect.stringMatching(/^10[.]99[.]/), muster_node_id: id });
    expect(tokenIn(hosts["yaml-1"].muster_bootstrap_command)).toHaveLength(43);
  });
});
