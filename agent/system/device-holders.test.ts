import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { until } from "../../test/support/until.ts";
import { walkDeviceHolders } from "./device-holders.ts";
import { readProcess } from "./workers/processes.ts";

/** The major number of the memory devices, such as /dev/zero (1:5). */
const MEMORY = new Set([1]);
const THREAD_HOLDER = join(import.meta.dirname, "../../test/support/thread-holder.py");
const isRoot = process.getuid?.() === 0;

let host: HostFolder;
let children: ChildProcess[];
beforeEach(() => {
  host = new HostFolder();
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  host.remove();
});

/**
 * Starts a process with pipes as standard input and output, and waits until it prints a line. The simulated host's /proc shows the started process.
 */
async function start(command: string, ...args: string[]): Promise<number> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  await new Promise<void>((resolve, reject) => {
    child.stdout?.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`${command} ended with ${code}`)));
  });
  const pid = child.pid ?? -1;
  symlinkSync(`/proc/${pid}`, join(host.root, "proc", String(pid)));
  return pid;
}
const holding = (path: string): Promise<number> => start("/bin/sh", "-c", 'exec 3< "$0"; echo ready; read line', path);
const walk = () => walkDeviceHolders(host.root, MEMORY);

/** The program maps a device into its memory and closes the device's descriptor, so that only the mapping holds the device. */
const MAPPER = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open(sys.argv[1], os.O_RDONLY)
assert libc.mmap(None, 4096, 1, 2, fd, 0) not in (None, ctypes.c_void_p(-1).value)
os.close(fd)
print("ready", flush=True)
sys.stdin.read()
`;

const LEADERLESS = `
import ctypes, os, sys, threading, time
fd = os.open(sys.argv[1], os.O_RDONLY)
threading.Thread(target=lambda: time.sleep(1000)).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
`;

describe.skipIf(!isRoot)("processes that hold a device (SKIPPED without root)", () => {
  it.skipIf(!isRoot)("finds a device behind a path that no link in /proc can show (SKIPPED without root)", async () => {
    const script = join(import.meta.dirname, "../../test/support/deep-holder.py");
    mkdirSync(host.path("tenant"));
    const device = await start("python3", script, host.path("tenant"), "device");
    mkdirSync(host.path("other"));
    await start("python3", script, host.path("other"), "folder");
    expect(walk()).toMatchObject({ holders: [{ pid: device, devices: ["1:5"] }], unreadable: [] });
  });

  it("are found by the device's number, whatever the name of the device", async () => {
    const node = host.path("innocent name");
    expect(spawnSync("mknod", [node, "c", "1", "5"]).status, "root may make a device file").toBe(0);
    const pid = await holding(node);
    expect(walk()).toEqual({
      holders: [{ pid, name: "sh", uid: 0, devices: ["1:5"], unit: null, startTicks: expect.stringMatching(/^\d+$/) }],
      unreadable: [],
    });
  });

  it("are found although the device file was removed", async () => {
    const node = host.path("node");
    spawnSync("mknod", [node, "c", "1", "7"]);
    const pid = await holding(node);
    await host.system.remove("/node");
    expect(walk().holders).toMatchObject([{ pid, devices: ["1:7"] }]);
  });

  it("are found if they have only mapped the device", async (context) => {
    context.skip(spawnSync("python3", ["-V"]).status !== 0, "python3 is not installed");
    const pid = await start("python3", "-c", MAPPER, "/dev/zero");
    expect(walk().holders).toMatchObject([{ pid, devices: ["1:5"] }]);
  });

  it("are found if their first thread has ended", async (context) => {
    context.skip(spawnSync("python3", ["-V"]).status !== 0, "python3 is not installed");
    const pid = await start("python3", "-c", LEADERLESS, "/dev/zero");
    await until("the first thread has ended", () => (readProcess(pid)?.state === "Z" ? true : undefined));
    expect(walk().holders).toMatchObject([{ pid, devices: ["1:5"] }]);
  });

  it("are found if only one thread has the device open, under the number of another file", async (context) => {
    context.skip(spawnSync("python3", ["-V"]).status !== 0, "python3 is not installed");
    const pid = await start("python3", THREAD_HOLDER, "/dev/zero", "open");
    expect(walk()).toMatchObject({ holders: [{ pid, devices: ["1:3", "1:5"] }], unreadable: [] });
  });

  it("are found if only one thread has the device open, which covers a file of another thread", async (context) => {
    context.skip(spawnSync("unshare", ["--mount", "python3", "-V"]).status !== 0, "no private mounts, or no python3");
    host.write("file", "text");
    const pid = await start("unshare", "--mount", "python3", THREAD_HOLDER, "/dev/zero", "covered", host.path("file"));
    expect(walk()).toMatchObject({ holders: [{ pid, devices: ["1:5"] }], unreadable: [] });
  });

  it("are not confused with processes that hold files, pipes, or devices of another number", async () => {
    host.write("file", "text");
    await holding(host.path("file"));
    await holding("/dev/tty0").catch(() => undefined);
    expect(walk()).toEqual({ holders: [], unreadable: [] });
  });

  it("are named with their systemd unit, user and start", async () => {
    const pid = await holding("/dev/zero");
    await host.system.remove(`/proc/${pid}`);
    const folder = host.path(`proc/${pid}`);
    mkdirSync(folder);
    for (const name of ["fd", "maps", "map_files", "status"]) symlinkSync(`/proc/${pid}/${name}`, join(folder, name));
    host.write(`proc/${pid}/stat`, `${pid} (a (strange) name) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n`);
    host.write(`proc/${pid}/cgroup`, "0::/system.slice/nvidia-dcgm.service/inner\n");
    expect(walk().holders).toMatchObject([
      { name: "a (strange) name", unit: "nvidia-dcgm.service", startTicks: "4711" },
    ]);
  });

  it("are not sought in files of a network file system, whose server may be gone", async () => {
    const pid = await holding("/dev/zero");
    await host.system.remove(`/proc/${pid}`);
    mkdirSync(host.path(`proc/${pid}`));
    for (const name of ["fd", "fdinfo", "maps", "map_files", "stat", "status", "cgroup"])
      symlinkSync(`/proc/${pid}/${name}`, host.path(`proc/${pid}/${name}`));
    const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8");
    const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/3`, "utf8"))?.[1];
    const own = mounts.split("\n").find((line) => line.startsWith(`${id} `)) ?? "";
    host.write(`proc/${pid}/mountinfo`, own);
    expect(walk().holders).toMatchObject([{ pid }]);
    host.write(`proc/${pid}/mountinfo`, own.replace(/ - \S+ /, " - nfs4 "));
    expect(walk()).toEqual({ holders: [], unreadable: [] });
  });

  it("that cannot be read are told, because they may hold a device", () => {
    host.write("proc/77/maps", "");
    host.write("proc/77/stat", "77 (a) S 1");
    host.write("proc/77/fd", "not a folder");
    host.write("proc/78/comm", "a process that has ended");
    expect(walk()).toEqual({ holders: [], unreadable: [77] });
  });

  it("get a signal only if they are still the same process", async () => {
    await holding("/dev/zero");
    const [holder] = walk().holders;
    if (holder === undefined) throw new Error("The holder was not found.");
    expect(host.system.signalHolder({ ...holder, startTicks: "1" }, "SIGKILL")).toBe(false);
    expect(host.system.signalHolder(holder, "SIGKILL")).toBe(true);
    await until("the holder has ended", () => (readProcess(holder.pid) === null ? true : undefined));
    expect(host.system.signalHolder(holder, "SIGKILL")).toBe(false);
  });

  it("get no signal by the pid of a folder that stands for a host", async () => {
    const pid = await holding("/dev/zero");
    const [holder] = walk().holders;
    if (holder === undefined) throw new Error("The holder was not found.");
    await host.system.remove(`/proc/${pid}`);
    for (const name of ["stat", "status", "cgroup"])
      host.write(`proc/${pid}/${name}`, readFileSync(`/proc/${pid}/${name}`, "utf8"));
    expect(() => host.system.signalHolder(holder, "SIGKILL")).toThrow("is not signalled for it");
    expect(readProcess(pid)?.state).toMatch(/^[SR]$/);
  });
});
