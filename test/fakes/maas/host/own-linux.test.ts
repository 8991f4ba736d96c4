import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ownLinuxObstacle, startOwnLinux } from "./own-linux.ts";

const why = await ownLinuxObstacle();
if (why !== null) process.stderr.write(`SKIPPED: a host with a Linux of its own: ${why}\n`);

const commandLines = (): string[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8");
      } catch {
        return "the process has ended";
      }
    });

describe.skipIf(why !== null)("a host with a Linux of its own", () => {
  const root = mkdtempSync(join(tmpdir(), "muster-own-linux-test-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const run = async (script: string, port: number): Promise<number | null> => {
    const command = ["bash", "-euc", script];
    const child = await startOwnLinux({ root, hostname: "c07u99", ports: [port], command });
    if (child.exitCode === null) await once(child, "exit");
    return child.exitCode;
  };

  it("is root in it, and reaches the given port of this machine, but not this machine's files and processes", async () => {
    const server = createServer((socket) => socket.end("hello\n")).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const script = `mkdir -p /etc; out=/etc/out; : >/etc/passwd; : >/etc/group
      { id -u; hostname; ls /proc | grep -c '^[0-9]'; } >$out
      install -o 20000 -g 20000 -m 600 /dev/null /tmp/of-tenant; stat -c %u /tmp/of-tenant >>$out
      if [ -e ${import.meta.filename} ] || [ -e /usr/bin/sudo ]; then echo visible; else echo hidden; fi >>$out
      exec 5<>/dev/tcp/127.0.0.1/${port}; cat <&5 >>$out
      exit 7`;
    expect(await run(script, port)).toBe(7);
    server.close();
    const [uid, hostname, processes, tenant, files, told] = readFileSync(join(root, "etc/out"), "utf8").split("\n");
    expect({ uid, hostname, tenant, files, told }).toEqual({
      uid: "0",
      hostname: "c07u99",
      tenant: "20000",
      files: "hidden",
      told: "hello",
    });
    expect(Number(processes)).toBeLessThan(10);
  });

  it("ends all its processes with its only service", async () => {
    const mark = `3600.${process.pid}`;
    expect(await run(`setsid sleep ${mark} & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; exit 0`, 1)).toBe(0);
    expect(commandLines().filter((one) => one.includes(`sleep\0${mark}`))).toEqual([]);
  });
});
