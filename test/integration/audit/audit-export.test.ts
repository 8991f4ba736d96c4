/** The export of the audit to files and syslog: across crashes, rotations, unreachable receivers, and with two hubs. */
import { randomUUID } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { exportNext, type Sink, startExport } from "../../../hub/audit/export.ts";
import { openAuditFile } from "../../../hub/audit/file-sink.ts";
import { KeptHeads } from "../../../hub/audit/kept-heads.ts";
import { sealAll } from "../../../hub/audit/sealer.ts";
import { openSyslog, type SyslogTarget } from "../../../hub/audit/syslog-sink.ts";
import { recordAudits } from "../../../hub/db/queries/audit-logs.ts";
import { loadConfig } from "../../../hub/startup/config.ts";
import { startAudit } from "../../../hub/startup/start-audit.ts";
import type { SealedEntry } from "../../../shared/audit-chain.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { REPOSITORY } from "../../support/documents.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

let test: TestDatabase;
let folder: string;
let heads: KeptHeads;
const closers: (() => unknown)[] = [];
beforeAll(async () => {
  test = await createTestDatabase();
  folder = mkdtempSync(join(tmpdir(), "muster-export-"));
  heads = await KeptHeads.open(folder);
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});
afterAll(async () => {
  await test?.drop();
  rmSync(folder, { recursive: true, force: true });
});

let total = 0;
async function record(count: number): Promise<void> {
  const entry = { actor: "ann", role: "admin", requestId: null, action: "test.act", target: "tests", reason: "é\n" };
  const entries = Array.from({ length: count }, (_, n) => ({ ...entry, details: { n } }));
  await test.database.inTx((tx) => recordAudits(tx, entries));
  await sealAll({ ...test.database, log: quietLog, heads }, null);
  total += count;
}

const to = (destination: string, sink: Sink, hubId: string = randomUUID()) => ({
  db: test.database.db,
  log: quietLog,
  hubId,
  destination,
  sink,
});
const linesOf = (file: string): string[] => readFileSync(file, "utf8").split("\n").slice(0, -1);
const verify = (...files: string[]) =>
  execa("node", ["hub/cli/main.ts", "audit", "verify", ...files.flatMap((file) => ["--file", file])], {
    cwd: REPOSITORY,
    reject: false,
  });

describe("the export to a file", () => {
  it("appends each entry as a line that only the hub's user can read, and continues at its position", async () => {
    const file = join(folder, "audit.jsonl");
    const first = openAuditFile(file);
    await record(450);
    expect(await exportNext(to("file", first))).toBe(total);
    expect(await exportNext(to("file", first))).toBe(0);
    await first.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await record(3);
    // Another hub continues as soon as the lease of the first hub has ended.
    await test.database.pool.query("update audit_exports set lease_until = now() - interval '1 second'");
    const second = openAuditFile(file);
    expect(await exportNext(to("file", second))).toBe(3);
    await second.close();
    expect(linesOf(file)).toHaveLength(total);
    const verified = await verify(file);
    expect([verified.exitCode, verified.stdout]).toEqual([
      0,
      expect.stringContaining(`${total} entries, 1 to ${total}.`),
    ]);
  });

  it("goes on in a new file after a rotation", async () => {
    const file = join(folder, "rotated.jsonl");
    const sink = openAuditFile(file);
    const about = to("rotated", sink);
    await exportNext(about);
    renameSync(file, `${file}.1`);
    await record(2);
    expect(await exportNext(about)).toBe(2);
    expect([linesOf(`${file}.1`).length, linesOf(file).length]).toEqual([total - 2, 2]);
    expect((await verify(`${file}.1`, file)).exitCode).toBe(0);
    await sink.close();
  });

  it("gives an entry a line of its own after the disk was full in the middle of the entry", async () => {
    const file = join(folder, "full.jsonl");
    const sink = openAuditFile(file);
    const about = to("full", sink);
    // The system lets this process write no byte beyond the first 200 of a file. Without a listener the signal would end the process.
    const ignore = (): void => undefined;
    process.on("SIGXFSZ", ignore);
    const limit = (bytes: string) => execa("prlimit", ["--pid", String(process.pid), `--fsize=${bytes}:`]);
    await limit("200");
    try {
      await expect(exportNext(about)).rejects.toThrow(/EFBIG/);
    } finally {
      await limit("unlimited");
      process.off("SIGXFSZ", ignore);
    }
    expect(statSync(file).size).toBe(200);
    expect(await exportNext(about)).toBe(total);
    await sink.close();
    const verified = await verify(file);
    expect(verified.stdout).toContain("is not a whole audit entry");
    expect([verified.exitCode, verified.stdout]).toEqual([0, expect.stringContaining(`1 to ${total}.`)]);
  });

  it("leaves a file as it is that another program may read, and refuses what is no file", async () => {
    const file = join(folder, "readable.jsonl");
    writeFileSync(file, "", { mode: 0o640 });
    const sink = openAuditFile(file);
    await exportNext(to("readable", sink));
    await sink.close();
    expect(statSync(file).mode & 0o777).toBe(0o640);
    const link = join(folder, "link.jsonl");
    symlinkSync(file, link);
    for (const path of ["/dev/null", folder, link])
      await expect(exportNext(to(`no file ${path}`, openAuditFile(path)))).rejects.toThrow(
        /no regular file|EISDIR|ELOOP/,
      );
  });

  it("stops between two parts if the hub stops, and the next hub continues at once", async () => {
    const parts: number[] = [];
    let stopped: Promise<void> | undefined;
    const hub = startExport(
      to("stopped", {
        write: async (entries) => {
          parts.push(entries.length);
          stopped ??= hub.close();
        },
        close: async () => undefined,
      }),
    );
    await until("the first part", () => stopped?.then(() => true));
    expect(parts).toEqual([200]);
    const next = openAuditFile(join(folder, "stopped.jsonl"));
    expect(await exportNext(to("stopped", next))).toBe(total - 200);
    await next.close();
  });

  it("repeats the entries of a part that a kill interrupted, and the verification accepts them", async () => {
    const file = join(folder, "killed.jsonl");
    const whole = openAuditFile(file);
    let writes = 0;
    // The first hub writes a part, begins the next one, and is killed before it notes its position.
    const dying: Sink = {
      write: async (entries) => {
        writes += 1;
        if (writes === 1) return whole.write(entries);
        await whole.write(entries.slice(0, 10));
        appendFileSync(file, JSON.stringify(entries[10]).slice(0, 50));
        throw new Error("killed");
      },
      close: whole.close,
    };
    await expect(exportNext(to("killed", dying))).rejects.toThrow("killed");
    await whole.close();
    await test.database.pool.query("update audit_exports set lease_until = now() where destination = 'killed'");
    const next = openAuditFile(file);
    await until("the lease to end", async () => ((await exportNext(to("killed", next))) > 0 ? true : undefined));
    await next.close();
    expect(linesOf(file)).toHaveLength(total + 11);
    const verified = await verify(file);
    expect(verified.stdout).toContain("10 of them exported twice");
    expect(verified.stdout).toContain("line 211: is not a whole audit entry");
    expect(verified.exitCode).toBe(0);
  });

  it("writes each entry once if two hubs have one destination", async () => {
    const file = join(folder, "shared.jsonl");
    const hubs = [openAuditFile(file), openAuditFile(file)].map((sink) => startExport(to("shared", sink)));
    await record(30);
    await until("all lines", () => {
      const lines = statSync(file, { throwIfNoEntry: false }) === undefined ? [] : linesOf(file);
      return lines.length >= total ? true : undefined;
    });
    await Promise.all(hubs.map((hub) => hub.close()));
    expect(linesOf(file)).toHaveLength(total);
    expect((await verify(file)).exitCode).toBe(0);
  });
});

/** A receiver of syslog over a stream, which reads messages by their octet counts. */
async function receiver(listen: (server: Server) => void) {
  const messages: string[] = [];
  let cut = 0;
  const server = createServer((socket) => {
    const parts: Buffer[] = [];
    socket.on("error", () => undefined);
    if (cut > 0) {
      cut -= 1;
      // A closed socket of this machine tells its sender of bytes that nobody read. A connection of TCP can be reset after a part of the bytes.
      if (socket.remoteAddress === undefined) socket.destroy();
      else socket.once("data", () => socket.resetAndDestroy());
      return;
    }
    socket.on("data", (part) => parts.push(part));
    socket.on("end", () => {
      let rest = Buffer.concat(parts);
      while (rest.length > 0) {
        const space = rest.indexOf(" ");
        const length = Number(rest.subarray(0, space).toString());
        messages.push(rest.subarray(space + 1, space + 1 + length).toString());
        rest = rest.subarray(space + 1 + length);
      }
    });
  });
  listen(server);
  await new Promise((resolve) => server.once("listening", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return {
    server,
    messages,
    cutNext: () => {
      cut += 1;
    },
  };
}

const entriesOf = (messages: readonly string[]): SealedEntry[] =>
  messages.map((message) => JSON.parse(message.slice(message.indexOf("{"))));

/** A receiver that does `act` with each connection. Returns the receiver as the hub names it. */
async function rudeReceiver(act: (socket: Socket) => void): Promise<SyslogTarget> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    closers.unshift(() => socket.destroy());
    act(socket);
  });
  const path = join(folder, `${randomUUID()}.sock`);
  server.listen(path);
  await once(server, "listening");
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  return { by: "unix", path };
}

describe("the export to syslog", () => {
  it.each(["tcp", "unix"] as const)("sends each entry by %s, and again after a cut connection", async (by) => {
    const path = join(folder, `${by}.sock`);
    const there = await receiver((server) => (by === "unix" ? server.listen(path) : server.listen(0, "127.0.0.1")));
    const bound = there.server.address();
    const target: SyslogTarget =
      by === "unix" || bound === null || typeof bound === "string"
        ? { by: "unix", path }
        : { by: "tcp", host: "127.0.0.1", port: bound.port };
    const about = to(by, openSyslog(target));
    there.cutNext();
    await expect(exportNext(about)).rejects.toThrow();
    expect(await exportNext(about)).toBe(total);
    const sequences = entriesOf(there.messages).map(({ sequence }) => sequence);
    expect(sequences).toEqual(Array.from({ length: total }, (_, n) => n + 1));
    expect(there.messages[0]).toMatch(/^<109>1 \d{4}-\S+Z \S+ muster \d+ test[.]act - \{"format":"muster-audit\/1"/);
    const file = join(folder, `${by}.log`);
    writeFileSync(file, `${there.messages.join("\n")}\n`);
    expect((await verify(file)).exitCode).toBe(0);
  });

  it.each([
    ["closes each connection at once", (socket: Socket) => socket.end(), 60_000, /before the hub had sent everything/],
    [
      "reads everything and never closes",
      (socket: Socket) => socket.resume(),
      10,
      /did not close the connection in time/,
    ],
  ])("does not move its position if the receiver %s", async (_what, act, momentMs, says) => {
    const about = to(randomUUID(), openSyslog(await rudeReceiver(act), { deadlineMs: 500, momentMs }));
    await expect(exportNext(about)).rejects.toThrow(says);
    const stored = await test.database.pool.query("select sequence::int from audit_exports where destination = $1", [
      about.destination,
    ]);
    expect(stored.rows).toEqual([{ sequence: 0 }]);
  });

  it("waits for a receiver that is away, and loses nothing", async () => {
    const path = join(folder, "late.sock");
    const about = to("late", openSyslog({ by: "unix", path }));
    await expect(exportNext(about)).rejects.toThrow(/ENOENT/);
    const hub = startExport(about, 100);
    closers.push(() => hub.close());
    const there = await receiver((server) => server.listen(path));
    await until("all entries", () => (there.messages.length >= total ? true : undefined));
    expect(entriesOf(there.messages)).toHaveLength(total);
  });

  it("sends each entry as a datagram by udp", async () => {
    const socket = createSocket("udp4");
    const received: string[] = [];
    socket.on("message", (message) => void received.push(message.toString()));
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    closers.push(() => new Promise<void>((resolve) => socket.close(() => resolve())));
    await test.database.pool.query(
      "insert into audit_exports (destination, sequence, lease_owner, lease_until) values ('udp', $1, gen_random_uuid(), now() - interval '1 second')",
      [total],
    );
    await record(5);
    const port = socket.address().port;
    expect(await exportNext(to("udp", openSyslog({ by: "udp", host: "127.0.0.1", port })))).toBe(5);
    await until("five datagrams", () => (received.length === 5 ? true : undefined));
    expect(entriesOf(received).map(({ details }) => details)).toEqual([0, 1, 2, 3, 4].map((n) => ({ n })));
  });
});

it("a hub exports to the places that its settings name", async () => {
  const there = await receiver((server) => server.listen(join(folder, "hub.sock")));
  const { auditExport } = loadConfig({
    MUSTER_AUDIT_FILE: join(folder, "hub.jsonl"),
    MUSTER_AUDIT_SYSLOG: `unix://${join(folder, "hub.sock")}`,
  });
  const config = { stateDir: mkdtempSync(join(folder, "state-")), auditExport };
  const ends: (() => Promise<void> | void)[] = [];
  await startAudit({ config, database: test.database, hubId: randomUUID(), log: quietLog }, ends);
  closers.push(...ends.reverse());
  await until("both exports", () =>
    there.messages.length >= total && existsSync(auditExport.file ?? "") ? true : undefined,
  );
  await until("the file", () => (linesOf(join(folder, "hub.jsonl")).length === total ? true : undefined));
});
