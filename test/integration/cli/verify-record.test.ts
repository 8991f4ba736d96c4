/** Verifies exported sanitization records by Muster's command line and by the commands of docs/sanitization.md, before and after tampering. */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HubAuthority } from "../../../hub/gateway/hub-authority.ts";
import { periodically } from "../../../hub/timing/periodically.ts";
import { canonicalJson } from "../../../shared/json.ts";
import { SanitizationDocument } from "../../../shared/sanitization-document.ts";
import { AgentHosts } from "../../support/agent-hosts.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { COMMANDS, REPOSITORY } from "../../support/documents.ts";
import { GatewayRig } from "../../support/gateway-rig.ts";
import { quietLog } from "../../support/log.ts";
import { TurnoverHost } from "../../support/turnover-rig.ts";
import { until } from "../../support/until.ts";

const NO_TOOLS = (await execa("jq", ["--version"], { reject: false })).exitCode !== 0;
if (NO_TOOLS) process.stderr.write("SKIPPED: jq is not installed (Debian package jq)\n");
const PAGE = COMMANDS.filter(({ file }) => file === "docs/sanitization.md").map(({ command }) => command);
const OPENSSL = PAGE.slice(PAGE.findIndex((one) => one.startsWith("jq -j .text record.json")));

let api: ApiHarness;
let rig: GatewayRig;
let url: string;
let folder: string;
let looking: ReturnType<typeof periodically>;
let host: TurnoverHost;
let other: TurnoverHost;
let ids: readonly string[];
/** Three sanitization records of one node, a record of another node, and the hub's order key that countersigned all four. */
let records: readonly [SanitizationDocument, SanitizationDocument, SanitizationDocument];
let foreign: SanitizationDocument;
let orderKey: string;
const hosts = new AgentHosts();

async function exported(id: string): Promise<SanitizationDocument> {
  const { body } = await api.ask("GET", `/api/v1/admin/sanitization-records/${id}/export`);
  return SanitizationDocument.parse(body);
}

beforeAll(async () => {
  api = await startApi();
  const { db } = api.database.database;
  const authority = await HubAuthority.open({ db, secrets: api.secrets, settleMs: 0 });
  const keys = { ca: authority.ca, signer: authority.signer, trustChain: () => authority.chain };
  rig = await GatewayRig.start({ ...keys, heartbeatMinTtlMs: 3_000 }, api.database);
  looking = periodically({
    everyMs: 500,
    turn: async () => void (await authority.refresh()),
    log: quietLog,
    failed: "the hub could not read its keys",
  });
  url = await api.listen();
  folder = mkdtempSync(join(tmpdir(), "muster-verify-"));
  host = await TurnoverHost.start(rig, hosts);
  other = await TurnoverHost.start(rig, hosts);
  const rows = [await host.turnOver(), await host.turnOver(), await host.turnOver(), await other.turnOver()];
  ids = rows.map(({ recordId }) => recordId);
  const [first, second, third, last] = await Promise.all(ids.map(exported));
  if (first === undefined || second === undefined || third === undefined || last === undefined) throw new Error("no");
  records = [first, second, third];
  foreign = last;
  orderKey = authority.signer.publicKey;
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await looking?.close();
  await hosts.end();
  await rig?.listener.close();
  await api.close();
});

const writeTo = (name: string, document: unknown): string => {
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(document));
  return file;
};
const cli = (...args: readonly string[]) =>
  execa(process.execPath, [join(REPOSITORY, "hub/cli/main.ts"), ...args], {
    reject: false,
    cwd: folder,
    // No hub listens on port 9, because the command `verify-record` works without a hub.
    env:
      args[0] === "verify-record" || args[0] === "help"
        ? { MUSTER_URL: "http://127.0.0.1:9" }
        : { MUSTER_URL: url, MUSTER_TOKEN: api.admin },
  });

/** Calls `verify-record` with the first document as FILE, and with each further document as a `--chain`. */
async function verified(documents: readonly unknown[], keys: readonly string[] = [orderKey]) {
  const [file = "", ...chain] = documents.map((one, n) => writeTo(`${n}-${randomUUID()}.json`, one));
  const flags = [...chain.flatMap((one) => ["--chain", one]), ...keys.map((key) => `--order-key=${key}`)];
  const { exitCode, stdout, stderr } = await cli("verify-record", file, ...flags);
  const codes = [...`${stdout}`.matchAll(/(?:^|json: )([a-z]+_[a-z_]+): /gm)].map(([, code]) => code);
  return { exitCode, stdout: `${stdout}${stderr}`, codes: [...new Set(codes)] };
}

async function run(commands: readonly string[], files: Readonly<Record<string, unknown>>, id = "") {
  const at = mkdtempSync(join(folder, "page-"));
  for (const [name, document] of Object.entries(files)) writeFileSync(join(at, name), JSON.stringify(document));
  const script = `set -euo pipefail
    npm() { while [ "$1" != muster ]; do shift; done; shift 2; "$TEST_NODE" "$TEST_CLI" "$@"; }
    ${commands.join("\n").replaceAll("<id>", id)}`;
  const env = {
    MUSTER_URL: url,
    MUSTER_TOKEN: api.admin,
    TEST_NODE: process.execPath,
    TEST_CLI: join(REPOSITORY, "hub/cli/main.ts"),
  };
  return execa("bash", ["-c", script], { cwd: at, reject: false, env, stdin: "ignore" });
}
const keyCommand = PAGE.find((one) => one.startsWith("printf")) ?? "";
const openssl = async (document: unknown, before: unknown = records[1]) =>
  (await run([keyCommand, ...OPENSSL], { "record.json": document, "record-2.json": before })).exitCode;

const changed = (document: SanitizationDocument, change: object): SanitizationDocument => ({
  ...document,
  text: canonicalJson({ ...JSON.parse(document.text), ...change }),
});
const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex");
const rawKey = (key: KeyObject): string => String(key.export({ format: "jwk" }).x);

/** Returns an exported document that somebody other than the hub has countersigned, as a forger would. */
function signedByAnother(document: SanitizationDocument, change: object = {}): SanitizationDocument {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const text = canonicalJson({
    ...JSON.parse(document.hub.text),
    record_sha256: sha256(document.text),
    order_key: rawKey(publicKey),
    ...change,
  });
  const signature = sign(null, Buffer.from(text), privateKey).toString("base64");
  const public_key_pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  return { ...document, hub: { ...document.hub, text, signature, public_key_pem } };
}

describe("an exported record", () => {
  it("is verified with the key that the hub tells, alone and with its chain", async () => {
    const [first, second, third] = records;
    expect(await verified([third])).toMatchObject({ exitCode: 0, codes: [] });
    expect(await verified([third, first, second])).toMatchObject({ exitCode: 0, codes: [] });
  });

  it("ends with 4 without a key that the reader trusts", async () => {
    expect(await verified([records[0]], [])).toMatchObject({ exitCode: 4, codes: [] });
    expect(await verified([signedByAnother(records[0])], [])).toMatchObject({ exitCode: 4, codes: [] });
  });

  it.runIf(!NO_TOOLS)("is verified by every command of docs/sanitization.md, as shown", async () => {
    const [, second] = records;
    const ran = await run(PAGE, { "record-2.json": second }, ids[2]);
    expect({ status: ran.exitCode, stderr: ran.stderr }).toEqual({ status: 0, stderr: expect.any(String) });
    expect(ran.stdout).toContain("Verified.");
    expect(ran.stdout).toContain("Verified OK");
    expect(ran.stdout).toContain("Signature Verified Successfully");
    expect(await openssl(records[2])).toBe(0);
  });

  it("is refused with 2 if its file or key cannot be read, and never asks a hub", async () => {
    expect((await cli("verify-record", "nowhere.json")).exitCode).toBe(2);
    expect((await cli("verify-record")).exitCode).toBe(2);
    expect((await cli("verify-record", "a", "b")).exitCode).toBe(2);
    expect((await cli("verify-record", "a", "--unknown")).exitCode).toBe(2);
    expect((await cli("verify-record", writeTo("r.json", records[0]), "--order-key=short")).exitCode).toBe(2);
    expect((await cli("help", "verify-record")).stdout).toContain("Exit status: 0");
  });
});

type Tampering = readonly [string, () => SanitizationDocument, readonly string[]];
const TAMPERED: readonly Tampering[] = [
  [
    "a changed step",
    () => changed(records[2], { tasks: [] }),
    ["agent_signature_wrong", "countersignature_differs", "verdict_differs"],
  ],
  [
    "a changed verdict",
    () => changed(records[2], { verdict: "incomplete" }),
    ["agent_signature_wrong", "countersignature_differs", "verdict_differs"],
  ],
  [
    "a changed sentence",
    () => changed(records[2], { claims: ["All data is gone."] }),
    ["agent_signature_wrong", "countersignature_differs"],
  ],
  [
    "another number in the chain",
    () => changed(records[2], { sequence: 4 }),
    ["agent_signature_wrong", "countersignature_differs"],
  ],
  ["a space in the text", () => ({ ...records[2], text: records[2].text.replace(",", ", ") }), ["record_unreadable"]],
  [
    "another agent's signature and certificate",
    () => ({ ...records[2], agent: foreign.agent }),
    ["agent_key_differs", "agent_signature_wrong", "countersignature_differs"],
  ],
  [
    "the signature of the agent's earlier record",
    () => ({ ...records[2], agent: records[1].agent }),
    ["agent_signature_wrong", "countersignature_differs"],
  ],
  [
    "the hub's signature of the earlier record",
    () => ({ ...records[2], hub: records[1].hub }),
    ["countersignature_differs"],
  ],
  ["the key of another hub", () => signedByAnother(records[2]), ["order_key_unknown"]],
  [
    "the key of another hub after a change",
    () => signedByAnother(changed(records[2], { claims: [] })),
    ["agent_signature_wrong", "order_key_unknown"],
  ],
  [
    "the key of another hub under this hub's name",
    () => signedByAnother(records[2], { order_key: orderKey }),
    ["countersignature_wrong"],
  ],
  [
    "a changed time of the hub's signature",
    () => ({
      ...records[2],
      hub: {
        ...records[2].hub,
        text: canonicalJson({ ...JSON.parse(records[2].hub.text), countersigned_at: "2020-01-01T00:00:00.000Z" }),
      },
    }),
    ["countersignature_wrong"],
  ],
];

describe("a tampered record", () => {
  it.each(TAMPERED)("with %s is found", async (_, tampered, codes) => {
    const found = await verified([tampered()]);
    expect(found, found.stdout).toMatchObject({ exitCode: 1, codes });
  });

  it.runIf(!NO_TOOLS).each(TAMPERED)("with %s is found by openssl", async (_, tampered) => {
    expect(await openssl(tampered())).not.toBe(0);
  });

  it("without the agent's signature is found", async () => {
    const found = await verified([{ ...records[2], agent: null }]);
    expect(found).toMatchObject({ exitCode: 1, codes: ["agent_signature_missing", "countersignature_differs"] });
  });

  it.each([
    ["no document", { format: "else" }],
    ["no JSON", "text"],
    ["a document with an unknown member", { more: 1 }],
  ])("that is %s is found", async (_, change) => {
    const value = typeof change === "string" ? change : { ...records[0], ...change };
    expect(await verified([value])).toMatchObject({ exitCode: 1, codes: ["document_unreadable"] });
  });
});

describe("a tampered chain", () => {
  it("with a removed record is found", async () => {
    expect(await verified([records[2], records[0]])).toMatchObject({ exitCode: 1, codes: ["record_missing"] });
  });

  it("with a record of another node is found", async () => {
    const found = await verified([records[1], foreign]);
    expect(found).toMatchObject({ exitCode: 1, codes: ["other_node"] });
  });

  it("is the same in any order of the files, and with a file given twice", async () => {
    expect(await verified([records[0], records[2], records[1], records[1]])).toMatchObject({ exitCode: 0 });
  });

  it("with two records whose numbers were exchanged is found", async () => {
    const [first, second, third] = records;
    const exchanged = [changed(second, { sequence: 3 }), changed(third, { sequence: 2 })];
    const found = await verified([first, ...exchanged]);
    expect(found.exitCode).toBe(1);
    expect(found.codes).toEqual(expect.arrayContaining(["countersignature_differs", "chain_broken"]));
  });

  it("with a record that a thief of agent and order key wrote anew is found by the record after it", async () => {
    const [first, second, third] = records;
    const rewritten = signedByAnother(changed(second, { claims: [] }));
    const keys = [orderKey, String(JSON.parse(rewritten.hub.text).order_key)];
    const found = await verified([third, rewritten, first], keys);
    expect(found).toMatchObject({ exitCode: 1, codes: ["agent_signature_wrong", "chain_broken"] });
    expect(await openssl(third, rewritten)).not.toBe(0);
  });

  it("with a record that does not follow the earlier record of its tenant's use is found", async () => {
    const allocation = {
      id: randomUUID(),
      tenant: "acme",
      login_user: "ann",
      granted_root: false,
      from: null,
      to: null,
    };
    const rows = [await other.turnOver({ allocation }), await other.turnOver({ allocation })];
    const [failed, again] = await Promise.all(rows.map(({ recordId }) => exported(recordId)));
    if (failed === undefined || again === undefined) throw new Error("no records");
    expect([JSON.parse(failed.text).follows, JSON.parse(again.text).follows]).toEqual([undefined, rows[0]?.recordId]);
    expect(await verified([again, failed, foreign])).toMatchObject({ exitCode: 0, codes: [] });
    expect(await verified([again])).toMatchObject({ exitCode: 0, codes: [] });
    for (const follows of [randomUUID(), JSON.parse(foreign.text).record_id, rows[1]?.recordId])
      expect((await verified([changed(again, { follows }), failed, foreign])).codes).toContain("follows_differs");
  });

  it("without its newest record is found with a list of heads that somebody kept", async () => {
    const [first, second, third] = records;
    const kept = await cli("list-sanitization-heads", "--output", "json");
    const heads = writeTo("heads.json", JSON.parse(kept.stdout));
    const items: readonly { node_id: string; sequence: number; record_sha256: string }[] = JSON.parse(
      kept.stdout,
    ).items;
    const nodeId = JSON.parse(third.text).node.id;
    expect(items.find(({ node_id }) => node_id === nodeId)).toMatchObject({
      sequence: 3,
      record_sha256: sha256(third.text),
    });
    expect(items).toHaveLength(2);
    const ask = async (documents: readonly unknown[], file = heads) => {
      const [main = "", ...chain] = documents.map((one, n) => writeTo(`h${n}-${randomUUID()}.json`, one));
      const flags = [...chain.flatMap((one) => ["--chain", one]), `--order-key=${orderKey}`, "--heads", file];
      const { exitCode, stdout } = await cli("verify-record", main, ...flags);
      return [exitCode, /head_[a-z]+/.exec(`${stdout}`)?.[0]];
    };
    expect(await ask([first, second, third])).toEqual([0, undefined]);
    expect(await ask([first, second])).toEqual([1, "head_missing"]);
    const other = items.map((one) => ({ ...one, record_sha256: "0".repeat(64) }));
    const changedHeads = writeTo("changed.json", { items: other, next_cursor: null });
    expect(await ask([first, second, third], changedHeads)).toEqual([1, "head_differs"]);
    const older = items.map((one) => ({ ...one, sequence: 1, record_sha256: sha256(first.text) }));
    expect(await ask([first, second], writeTo("older.json", { items: older, next_cursor: null }))).toEqual([
      0,
      undefined,
    ]);
    expect((await ask([third], writeTo("part.json", { items: [], next_cursor: "more" })))[0]).toBe(2);
  });

  it("with two records of one number is found", async () => {
    const twin = changed(records[1], { claims: [] });
    expect((await verified([records[1], twin])).codes).toContain("record_repeated");
  });
});

it.runIf(!NO_TOOLS)("a record that the hub alone signed is verified, and a change of it is found", async () => {
  const without_turnover = { because: "node_removed", begun: null } as const;
  const lost = { without_turnover, required: [], residue: null, unsigned_reason: "no agent was asked" };
  const { text } = await other.prepare([], lost);
  const stored = await other.store(text, null);
  if (!("stored" in stored)) throw new Error(stored.message);
  const alone = await exported(stored.stored.recordId);
  const found = await verified([alone]);
  expect(found, found.stdout).toMatchObject({ exitCode: 0, codes: [] });
  expect(found.stdout).toContain("not signed by an agent");
  expect(found.stdout).toContain(": not_clean");
  const commands = OPENSSL.filter((one) => !/agent|record-2/.test(one));
  expect(commands).toHaveLength(5);
  const byHand = async (document: unknown) =>
    (await run([keyCommand, ...commands], { "record.json": document })).exitCode;
  expect(await byHand(alone)).toBe(0);
  const lied = changed(alone, { without_turnover: { ...without_turnover, because: "host_released" } });
  expect((await verified([lied])).codes).toContain("countersignature_differs");
  expect(await byHand(lied)).not.toBe(0);
});

describe("a rotation of the order key", () => {
  it("leaves old records verified, and lets the earlier key verify new records", async () => {
    const rotate = (verb: string) => api.ask("POST", `/api/v1/admin/authority/rotation${verb}`, { reason: "test" });
    expect((await rotate("")).status).toBe(201);
    // The hub refuses to finish a key rotation until all agents know the new key.
    await until("the rotation to end", async () => ((await rotate("/finish")).status === 200 ? true : undefined));
    const newKey = await until("the hub to use the new key", () =>
      rig.signer.publicKey === orderKey ? undefined : rig.signer.publicKey,
    );
    const row = await host.turnOver();
    expect(row.orderKey).toBe(newKey);
    const [recent, old] = [await exported(row.recordId), await exported(ids[2] ?? "")];
    expect(recent.statements.map(({ kind }) => kind)).toEqual(["announce", "finish"]);
    expect(await verified([recent, ...records], [orderKey])).toMatchObject({ exitCode: 0 });
    expect(await verified([recent], [newKey])).toMatchObject({ exitCode: 0 });
    expect(await verified([old], [newKey])).toMatchObject({ exitCode: 1, codes: ["order_key_unknown"] });
    const unproven = { ...recent, statements: recent.statements.map((one) => ({ ...one, signature: "A".repeat(86) })) };
    expect(await verified([unproven], [orderKey])).toMatchObject({ exitCode: 1, codes: ["order_key_unknown"] });
  });
});
