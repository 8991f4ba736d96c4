import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TaskReply } from "../../../shared/tasks/index.ts";
import { fuseServer, lookAt, waitsForItself } from "../../support/fuse-server.ts";
import { type GrantOrder, granted, grantOrder } from "../../support/tenant-orders.ts";
import { TenantWorld } from "../../support/tenant-world.ts";

const lacks = TenantWorld.lacks();
const V1_FREEZER = "/sys/fs/cgroup/freezer";
const hasFuse = existsSync("/dev/fuse");
const hasFreezer = existsSync(`${V1_FREEZER}/cgroup.procs`);

/** Returns a Python program that takes the tenant's uid and then runs the lines of `then`. */
const asTenant = (uid: number, then: string): string => `
import os, signal, time, ctypes, threading
os.setgroups([]); os.setgid(${uid}); os.setuid(${uid})
${then}`;
const READY = 'print("ready", flush=True)';

describe.skipIf(lacks !== null)(`a revocation ends processes${lacks === null ? "" : ` (skipped: ${lacks})`}`, () => {
  let world: TenantWorld;
  beforeAll(async () => {
    world = await TenantWorld.start();
  });
  afterAll(() => world?.end());

  const revoke = ({ allocation_id, login_user }: GrantOrder, env?: Record<string, string>) =>
    world.task("allocation.revoke_user", { allocation_id, login_user, plan: false }, env);
  const evidenceOf = (reply: TaskReply<"allocation.revoke_user">) =>
    reply.ok ? reply.result.steps.find(({ step }) => step === "processes") : reply;
  const alive = async (pattern: string): Promise<string> =>
    world.sh(
      `for p in /proc/[0-9]*; do grep -q -E '${pattern}' $p/status 2>/dev/null && grep -H -E '^(Name|State|Threads)' $p/status; done || true`,
    );

  it.each<[string, (uid: number) => string, number]>([
    ["a process that sleeps", (uid) => asTenant(uid, `${READY}\ntime.sleep(1000)`), 0],
    [
      "a process that ignores SIGTERM and SIGHUP",
      (uid) => asTenant(uid, `[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]\n${READY}\ntime.sleep(1000)`),
      1,
    ],
    [
      "a process that was stopped",
      (uid) =>
        asTenant(uid, `pid = os.fork()\nif pid == 0: os.kill(os.getpid(), 19)\ntime.sleep(0.2)\n${READY}\nos._exit(0)`),
      1,
    ],
    [
      "a daemon in a session of its own",
      (uid) =>
        asTenant(
          uid,
          `os.fork() and os._exit(0) if False else None\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    time.sleep(1000)\n  os._exit(0)\n${READY}\ntime.sleep(1000)`,
        ),
      0,
    ],
    [
      "threads whose first thread has ended",
      (uid) =>
        asTenant(
          uid,
          `signal.signal(15, signal.SIG_IGN)
def rest():
  time.sleep(0.3); ${READY}
  while True: time.sleep(1)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall(${process.arch === "arm64" ? 93 : 60}, 0)`,
        ),
      1,
    ],
    [
      "a process with the tenant's saved uid only",
      (uid) => `import os, time\nos.setresuid(4242, 4242, ${uid})\n${READY}\ntime.sleep(1000)`,
      0,
    ],
    [
      "a process with the tenant's real uid and root's effective uid",
      (uid) => `import os, time\nos.setresuid(${uid}, 0, 0)\n${READY}\ntime.sleep(1000)`,
      0,
    ],
    [
      "a process in a pid namespace of its own",
      (uid) =>
        `import os, time, ctypes\nctypes.CDLL(None).unshare(0x20000000)\nif os.fork() == 0:\n  os.setuid(${uid})\n  ${READY}\n  time.sleep(1000)\nos._exit(0)`,
      1,
    ],
    [
      "processes that start others without end",
      (uid) =>
        asTenant(
          uid,
          `import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (60, 60))\nsignal.signal(15, signal.SIG_IGN)\nsignal.signal(17, signal.SIG_IGN)\n${READY}
while True:
  try:
    if os.fork() == 0: time.sleep(0.01)
  except OSError: time.sleep(0.002)`,
        ),
      1,
    ],
  ])("%s", async (_what, script, killed) => {
    const order = grantOrder();
    const uid = await granted(world, order);
    await world.start(script(uid));
    expect(await alive(`^Uid:.*\\b${uid}\\b`)).not.toBe("");
    const step = evidenceOf(await revoke(order));
    expect(step).toMatchObject({ outcome: "ok", evidence: { survivors: 0 } });
    expect(Number(step && "evidence" in step ? step.evidence["found"] : 0)).toBeGreaterThanOrEqual(1);
    expect(Number(step && "evidence" in step ? step.evidence["killed"] : 0)).toBeGreaterThanOrEqual(killed);
    expect(await alive(`^Uid:.*\\b${uid}\\b`)).not.toMatch(/State:\s+[^ZX]/);
    expect(await world.sh(`getent passwd ${order.login_user} || echo none`)).toBe("none");
  });

  it("a process of root that the tenant's login started", async () => {
    const order = grantOrder();
    const uid = await granted(world, order);
    await world.start(`
import os, time
try:
  open("/proc/self/loginuid", "w").write("${uid}")
  result = "set"
except OSError as error: result = "forbidden"
open("${world.folder}/outside/login", "w").write(result)
print("ready", flush=True)
time.sleep(1000)`);
    const isSet = (await world.sh("cat $W/outside/login; rm $W/outside/login")) === "set";
    if (!isSet) console.warn("NOT TESTED: this kernel does not let a process set its login uid.");
    const step = evidenceOf(await revoke(order));
    expect(step).toMatchObject({ outcome: "ok", evidence: { found: isSet ? 1 : 0 } });
  });

  it("processes of the tenant's subordinate uids, but of no range that contains an account of the host", async () => {
    const order = grantOrder();
    await granted(world, order);
    await world.sh(
      `printf '%s\\n' '${order.login_user}:900000000:65536' '${order.login_user}:0:100000' '${order.login_user}:400000:10' 'mtst-x:400005:1' >> /etc/subuid`,
    );
    const sleeping = (uid: number) =>
      `import os, time\nos.setuid(${uid})\nprint("ready", flush=True)\ntime.sleep(1000)`;
    for (const uid of [900_000_064, 4242, 400_001]) await world.start(sleeping(uid));
    expect(evidenceOf(await revoke(order))).toMatchObject({ outcome: "ok", evidence: { found: 1 } });
    expect(await alive("^Uid:.*\\b900000064\\b")).toBe("");
    expect(await alive("^Uid:.*\\b4242\\b")).not.toBe("");
    expect(await alive("^Uid:.*\\b400001\\b")).not.toBe("");
    expect(await world.sh(`grep -c '^${order.login_user}:' /etc/subuid || true`)).toBe("0");
    expect(await world.sh("grep -c '^mtst-x:' /etc/subuid")).toBe("1");
  });

  it("and leaves the processes of others", async () => {
    const [one, other] = [grantOrder(), grantOrder()];
    await granted(world, one);
    const uid = await granted(world, other);
    await world.start(asTenant(uid, `${READY}\ntime.sleep(1000)`));
    expect(evidenceOf(await revoke(one))).toMatchObject({ outcome: "ok", evidence: { found: 0 } });
    expect(await alive(`^Uid:.*\\b${uid}\\b`)).not.toBe("");
    expect((await revoke(other)).ok).toBe(true);
  });

  describe.skipIf(!hasFuse)(
    `of a FUSE file system${hasFuse ? "" : " (skipped: this machine has no /dev/fuse)"}`,
    () => {
      const setUp = async (): Promise<{ order: GrantOrder; uid: number; folder: string }> => {
        const order = grantOrder();
        const uid = await granted(world, order);
        const folder = `/run/${order.login_user}`;
        await world.sh(`mkdir -m 777 ${folder}`);
        return { order, uid, folder };
      };

      it.each([
        ["by the file system fusectl", "mountpoint -q /sys/fs/fuse/connections"],
        ["by umount --force without the file system fusectl", "umount /sys/fs/fuse/connections"],
      ])("a server that waits for its own file system, %s", async (_how, prepare) => {
        const { order, uid, folder } = await setUp();
        await world.start(fuseServer({ folder, uid, program: waitsForItself(folder) }));
        await world.sh(prepare);
        const step = evidenceOf(await revoke(order, { TEST_KILL_MS: "10000" }));
        await world.sh("mountpoint -q /sys/fs/fuse/connections || mount -t fusectl fusectl /sys/fs/fuse/connections");
        expect(step).toMatchObject({ outcome: "ok", evidence: { survivors: 0, killed: 1 } });
        expect(await alive(`^Uid:.*\\b${uid}\\b`)).not.toMatch(/State:\s+[^ZX]/);
      });

      it("but leaves the site's file system alone, and names the thread of the tenant that waits for it", async () => {
        const { order, uid, folder } = await setUp();
        const program = `
if os.fork() == 0:
  os.close(device); os.setgroups([]); os.setgid(${uid}); os.setuid(${uid})
  ${lookAt(folder)}
  time.sleep(1000)
os.read(device, 1 << 20)
open("${world.folder}/outside/server", "w").write(str(os.getpid()))
print("ready", flush=True)
time.sleep(1000)`;
        await world.start(fuseServer({ folder, uid: 0, program }));
        const reply = await revoke(order, { TEST_KILL_MS: "1500" });
        expect(reply).toMatchObject({ ok: false, error: "processes_survive" });
        const named = /python3 \(pid (\d+), thread (\d+), state D, waits in [a-z_]+\)/.exec(
          reply.ok ? "" : reply.message,
        );
        expect(named?.[1]).toBeDefined();
        expect(named?.[2]).not.toBe(named?.[1]);
        expect(await world.sh(`grep -c ' ${folder} ' /proc/self/mountinfo`)).toBe("1");
        await world.sh(`kill -9 $(cat $W/outside/server)`);
        expect(evidenceOf(await revoke(order))).toMatchObject({ outcome: "ok", evidence: { survivors: 0 } });
        await world.sh(`umount ${folder}`);
      });
    },
  );

  const why = hasFreezer
    ? ""
    : ` (skipped: this machine has no ${V1_FREEZER}, which makes processes that SIGKILL does not end)`;
  it.skipIf(!hasFreezer)(`names a process that SIGKILL does not end, and keeps the locked account${why}`, async () => {
    const order = grantOrder();
    const uid = await granted(world, order);
    const group = `${V1_FREEZER}/muster-test-${process.pid}-${uid}`;
    await world.start(`
import os, time
os.mkdir("${group}")
open("${group}/cgroup.procs", "w").write("0")
os.setuid(${uid})
print("ready", flush=True)
time.sleep(1000)`);
    await world.sh(`echo FROZEN > ${group}/freezer.state`);
    try {
      const reply = await revoke(order, { TEST_KILL_MS: "1500" });
      expect(reply).toMatchObject({ ok: false, error: "processes_survive" });
      expect(reply.ok ? "" : reply.message).toMatch(/python3 \(pid [0-9]+, state D, waits in [a-z_]+\)/);
      expect(await world.sh(`getent shadow ${order.login_user}`)).toMatch(/^mtst-[0-9]+:!.*:1:$/);
      expect(await world.sh(`cat /var/lib/muster/agent/allocations/${order.allocation_id}.json`)).toContain("revoking");
    } finally {
      await world.sh(
        `echo THAWED > ${group}/freezer.state; for try in 1 2 3 4 5 6 7 8 9; do rmdir ${group} && break; sleep 0.2; done`,
      );
    }
    expect(evidenceOf(await revoke(order))).toMatchObject({ outcome: "ok", evidence: { survivors: 0 } });
  });
});
