/** The chain over the audit entries, with a real database: sealed by two hubs at once, tampered with, and verified by API and command line. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { KeptHeads } from "../../../hub/audit/kept-heads.ts";
import { sealAll } from "../../../hub/audit/sealer.ts";
import { pruneAudit } from "../../../hub/db/queries/audit-prune.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { recordActs, tamperWith } from "../../support/audit-chain.ts";
import { REPOSITORY } from "../../support/documents.ts";
import { quietLog } from "../../support/log.ts";

const LOGS = "/api/v1/admin/audit-logs";
let api: ApiHarness;
let url: string;
let folder: string;
let heads: KeptHeads;

const query = async (text: string, values: unknown[] = []) =>
  (await api.database.database.pool.query(text, values)).rows;
const options = () => ({ ...api.database.database, log: quietLog, heads });
const seal = (lookBack: number | null = null) => sealAll(options(), lookBack);

const record = (count: number) => recordActs(api.database, count);
const tamper = (statement: string) => tamperWith(api.database, statement);

const verified = async (search = "") => (await api.ask("GET", `${LOGS}/verify${search}`)).body;
const faults = async (): Promise<[string, number][]> =>
  (await verified()).faults.map(({ code, sequence }: { code: string; sequence: number }) => [code, sequence]);

beforeAll(async () => {
  api = await startApi();
  url = await api.listen();
  folder = mkdtempSync(join(tmpdir(), "muster-audit-"));
});
afterAll(async () => {
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  await tamper("truncate audit_logs, audit_seals restart identity");
  heads = await KeptHeads.open(mkdtempSync(join(folder, "state-")));
  api.auditHeads = [];
});

const muster = (...words: string[]) =>
  execa("node", ["hub/cli/main.ts", ...words], {
    cwd: REPOSITORY,
    reject: false,
    env: { MUSTER_URL: url, MUSTER_TOKEN: api.admin },
  });

describe("the sealer", () => {
  it("gives each entry one place, in one chain, if two hubs seal at once", async () => {
    await record(2_500);
    await Promise.all([seal(), seal(), record(30)]);
    await seal(1_000);
    expect(await verified()).toMatchObject({ entries: 2_530, complete: true, unsealed: 0, fault_count: 0 });
    expect(await query("select count(distinct audit_id)::int as n from audit_seals")).toEqual([{ n: 2_530 }]);
  });

  it("seals an entry whose transaction committed after later entries were sealed", async () => {
    const client = await api.database.database.pool.connect();
    await client.query("begin");
    await client.query("insert into audit_logs (actor, role, action, target) values ('old hub', 'admin', 'late', 't')");
    await record(20);
    await seal(1_000);
    await client.query("commit");
    client.release();
    await seal(1_000);
    // A hub of an older version wrote the late entry, without the hash of its content.
    const rows = await query(
      "select s.sequence::int as n, a.content_sha256 as hash from audit_seals s join audit_logs a on a.id = s.audit_id where a.action = 'late'",
    );
    expect(rows).toEqual([{ n: 21, hash: null }]);
    expect(await verified()).toMatchObject({ entries: 21, unsealed: 0, fault_count: 0 });
  });

  it("looks back as far as it is told, and at a start through the whole table", async () => {
    await record(2_000);
    await seal();
    await tamper("delete from audit_seals where sequence = 1");
    await record(1);
    await seal(1_000);
    expect(await verified()).toMatchObject({ unsealed: 1 });
    await seal(null);
    expect(await verified()).toMatchObject({ unsealed: 0, through: { sequence: 2_002 } });
  });

  it("keeps the head outside the database, readable only by the hub", async () => {
    await record(3);
    await seal();
    const [{ entry_sha256: hash }] = await query("select entry_sha256 from audit_seals where sequence = 3");
    expect(await heads.list()).toEqual([{ file: "audit-head.json", sequence: 3, entry_sha256: hash }]);
  });
});

describe("the triggers of the tables", () => {
  it.each([
    "update audit_logs set actor = 'eve'",
    "delete from audit_logs",
    "truncate audit_logs",
    "update audit_seals set entry_sha256 = ''",
    "delete from audit_seals",
    "truncate audit_seals",
  ])("refuse: %s", async (statement) => {
    await record(1);
    await seal();
    await expect(query(statement)).rejects.toThrow("audit entries are never changed");
  });
});

describe("the verification", () => {
  it.each([
    ["a changed actor", "update audit_logs set actor = 'eve' where id = 5", [["content_changed", 5]]],
    ["a changed detail", "update audit_logs set details = '{}' where id = 5", [["content_changed", 5]]],
    ["a changed time", "update audit_logs set occurred_at = now() where id = 5", [["entry_changed", 5]]],
    ["a changed site", "update audit_logs set site_id = gen_random_uuid() where id = 5", [["entry_changed", 5]]],
    ["a removed entry", "delete from audit_logs where id = 5", [["entry_removed", 5]]],
    [
      "an entry removed with its seal",
      "with gone as (delete from audit_seals where sequence = 5) delete from audit_logs where id = 5",
      [["entries_missing", 5]],
    ],
    [
      "two entries in each other's place",
      "update audit_seals set audit_id = case sequence when 5 then -6 when 6 then -5 end where sequence in (5, 6); update audit_seals set audit_id = -audit_id where audit_id < 0",
      [
        ["entry_changed", 5],
        ["entry_changed", 6],
      ],
    ],
    ["the first entries removed", "delete from audit_seals where sequence < 4", [["start_missing", 1]]],
  ])("shows %s", async (_, statement, expected) => {
    await record(9);
    await seal();
    expect(await faults()).toEqual([]);
    await tamper(statement);
    expect(await faults()).toEqual(expected);
    const command = await muster("audit", "verify");
    expect(command.exitCode).toBe(1);
    expect(command.stdout).toContain(expected[0]?.[0]);
  });

  it("shows with the kept head that the end was cut off, or rewritten with the chain after it", async () => {
    await record(9);
    await seal();
    api.auditHeads = await heads.list();
    expect((await muster("audit", "verify")).exitCode).toBe(0);
    await tamper("delete from audit_seals where sequence > 6; delete from audit_logs where id > 6");
    expect(await faults()).toEqual([["head_missing", 7]]);
    expect((await muster("audit", "verify")).stdout).toContain("The entries 7 to 9 are missing at the end");
    await record(5);
    const error: string[] = [];
    const log = { ...quietLog, error: (message: string) => void error.push(message) };
    await sealAll({ ...options(), log }, null);
    expect(error).toEqual(["the audit chain lost entries that it had: run muster audit verify"]);
    // The hub keeps the lost head beside the new one, until a person has looked into the loss.
    api.auditHeads = await heads.list();
    expect(api.auditHeads.map(({ file, sequence }) => [file, sequence]).sort()).toEqual([
      ["audit-head.json", 11],
      ["audit-head.lost-9.json", 9],
    ]);
    expect(await faults()).toEqual([["head_differs", 9]]);
    expect((await muster("verify-audit-logs")).exitCode).toBe(1);
  });

  it("goes through the chain in parts", async () => {
    await record(50);
    await seal();
    await tamper("update audit_logs set actor = 'eve' where id in (3, 30)");
    const first = await verified("?limit=20");
    expect(first).toMatchObject({ entries: 20, complete: false, unsealed: null, fault_count: 1 });
    expect(await verified(`?after=${first.through.sequence}`)).toMatchObject({
      entries: 30,
      complete: true,
      fault_count: 1,
    });
  });
});

describe("a head that the chain has lost", () => {
  it("is a fault of one part only: of the part with its number, or of the last one", async () => {
    await record(50);
    await seal();
    const entry_sha256 = "0".repeat(64);
    api.auditHeads = [30, 60].map((sequence) => ({ file: `audit-head.lost-${sequence}.json`, sequence, entry_sha256 }));
    const faultsOf = async (search: string): Promise<[string, number][]> =>
      (await verified(search)).faults.map(({ code, sequence }: { code: string; sequence: number }) => [code, sequence]);
    expect(await faultsOf("?limit=29")).toEqual([]);
    for (const search of ["?limit=30", "?after=29&limit=10"])
      expect(await faultsOf(search), search).toEqual([["head_differs", 30]]);
    expect(await faultsOf("?after=30&limit=10")).toEqual([]);
    expect(await faultsOf("?after=30&limit=20")).toEqual([["head_missing", 51]]);
  });
});

describe("retention", () => {
  it("loses no head of a hub that was stopped while another hub removed the entry of the head", async () => {
    const old = "update audit_logs set occurred_at = now() - interval '401 days' where id <= 4";
    await record(3);
    await tamper(old);
    const stopped = await KeptHeads.open(mkdtempSync(join(folder, "stopped-")));
    await sealAll({ ...options(), heads: stopped }, null);
    expect(await stopped.list()).toMatchObject([{ sequence: 3 }]);
    await record(3);
    await tamper(old);
    await seal();
    expect(await pruneAudit(api.database.database.inTx, 400)).toBe(4);
    await seal();
    const errors: string[] = [];
    const log = { ...quietLog, error: (message: string) => void errors.push(message) };
    await sealAll({ ...options(), log, heads: stopped }, null);
    expect([errors, await stopped.countLost()]).toEqual([[], 0]);
    expect(await stopped.list()).toMatchObject([{ sequence: 7 }]);
  });

  it("removes old entries from the begin of the chain on, which stays verifiable", async () => {
    await record(6);
    await tamper("update audit_logs set occurred_at = now() - interval '401 days' where id <= 4 or id = 6");
    await seal();
    expect(await pruneAudit(api.database.database.inTx, 400)).toBe(4);
    expect(await pruneAudit(api.database.database.inTx, 400)).toBe(0);
    await seal();
    expect(await query("select id::int as id, action from audit_logs order by id")).toEqual([
      { id: 5, action: "test.act" },
      { id: 6, action: "test.act" },
      { id: 7, action: "audit.prune" },
    ]);
    expect(await verified()).toMatchObject({ entries: 3, fault_count: 0 });
    // The head of a removed part is no fault.
    await tamper("delete from audit_seals where sequence = 5");
    expect(await faults()).toEqual([["start_missing", 1]]);
  });

  it("keeps the newest sealed entry, so that no number is given twice", async () => {
    await record(3);
    await tamper("update audit_logs set occurred_at = now() - interval '401 days'");
    await seal();
    expect(await pruneAudit(api.database.database.inTx, 400)).toBe(2);
    await seal();
    expect(await verified()).toMatchObject({ entries: 2, through: { sequence: 4 }, fault_count: 0 });
  });

  it("refuses to remove young entries, and entries that no entry audit.prune names", async () => {
    await record(3);
    await seal();
    await expect(query("select muster_prune_audit(2)")).rejects.toThrow("younger than 30 days");
    await tamper("update audit_logs set occurred_at = now() - interval '31 days'");
    await expect(query("select muster_prune_audit(2)")).rejects.toThrow("no entry audit.prune names");
    await expect(query("select muster_prune_audit(9)")).rejects.toThrow("there is no sealed audit entry 9");
  });
});

describe("muster audit verify --file", () => {
  const exported = async (): Promise<string[]> => {
    const { items } = (await api.ask("GET", `${LOGS}?limit=200`)).body;
    return items
      .reverse()
      .map(({ id: _id, ...item }: { id: string }) => JSON.stringify({ format: "muster-audit/1", ...item }));
  };
  const write = (name: string, lines: readonly string[]): string => {
    const file = join(folder, name);
    writeFileSync(file, `${lines.join("\n")}\n`);
    return file;
  };

  it("verifies an export without a hub, and compares its end with the hub's chain", async () => {
    await record(9);
    await seal();
    const lines = await exported();
    const whole = write("whole.jsonl", lines);
    const good = await execa("node", ["hub/cli/main.ts", "audit", "verify", "--file", whole], {
      cwd: REPOSITORY,
      env: { MUSTER_URL: "http://127.0.0.1:1" },
    });
    expect(good.stdout).toContain("Files: 9 entries, 1 to 9.");
    const head = /Head: (\S+)/.exec(good.stdout)?.[1] ?? "";
    // A later part of the export, with syslog headers, continues the first part.
    const parts = [
      write("one.jsonl", lines.slice(0, 5)),
      write(
        "two.jsonl",
        lines.slice(3).map((line) => `<110>1 - hub muster - - - ${line}`),
      ),
    ];
    const both = await muster(
      "audit",
      "verify",
      "--file",
      parts[0] ?? "",
      "--file",
      parts[1] ?? "",
      `--head=${head}`,
      "--compare",
    );
    expect([both.exitCode, both.stdout]).toEqual([0, expect.stringContaining("2 of them exported twice")]);
    const removed = await muster("audit", "verify", "--file", write("removed.jsonl", lines.toSpliced(4, 1)));
    expect([removed.exitCode, removed.stdout]).toEqual([
      1,
      expect.stringContaining("entries_missing: The entry 5 before entry 6 is missing."),
    ]);
    const changed = lines.map((line, n) => (n === 4 ? line.replace('"actor":"ann"', '"actor":"eve"') : line));
    expect((await muster("audit", "verify", "--file", write("changed.jsonl", changed))).stdout).toContain(
      "content_changed: Entry 5",
    );
    const cut = await muster("audit", "verify", "--file", write("cut.jsonl", lines.slice(0, 7)), `--head=${head}`);
    expect([cut.exitCode, cut.stdout]).toEqual([
      1,
      expect.stringContaining("The entries 8 to 9 are missing at the end"),
    ]);
    await tamper("delete from audit_seals where sequence > 6; delete from audit_logs where id > 6");
    const shorter = await muster("audit", "verify", "--file", whole, "--compare");
    expect([shorter.exitCode, shorter.stdout]).toEqual([1, expect.stringContaining("head_missing")]);
  });

  it("explains a wrong command line", async () => {
    const empty = write("empty.jsonl", ["nothing"]);
    for (const words of [
      ["--compare"],
      ["--head=5"],
      ["--file", empty],
      ["--file", join(folder, "none")],
      ["--nonsense"],
      ["more"],
    ])
      expect((await muster("audit", "verify", ...words)).exitCode, words.join(" ")).toBe(2);
    expect((await muster("help", "audit")).stdout).toContain("muster audit verify");
    expect(readFileSync(empty, "utf8")).toBe("nothing\n");
  });
});
