import { rmSync } from "node:fs";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { AMD_PCI, AmdHost } from "../../test/fakes/gpu/amd-host.ts";
import { NvidiaHost, PCI } from "../../test/fakes/gpu/nvidia-host.ts";
import { HostFolder, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { until } from "../../test/support/until.ts";
import { noteResets } from "../gpu/gpu-resets.ts";
import { damp } from "./damping.ts";
import { rasProbe } from "./gpu-probes.ts";
import { disksProbe } from "./host-probes.ts";
import { type Findings, fault, fine, type Judged, notObserved, unreadable } from "./judged.ts";
import type { Probe } from "./probe.ts";
import { healthProbes } from "./probes.ts";
import { JOURNAL, NVME_LOG, SMARTCTL_ATA } from "./recorded.fixture.ts";
import { HealthSampler, lookNow } from "./sampler.ts";
import { HealthWatch } from "./watch.ts";

const hosts: HostFolder[] = [];
afterEach(() => {
  for (const host of hosts.splice(0)) host.remove();
});
const kept = <H extends HostFolder>(host: H): H => {
  hosts.push(host);
  return host;
};
const MINUTE = 60_000;
const said = (sampler: HealthSampler, nowMs: number) =>
  Object.fromEntries(sampler.conditions(nowMs).map(({ type, status, reason }) => [type, `${status} ${reason}`]));

const samplerOf = (host: HostFolder, probes: readonly Probe[] = healthProbes(), isWorking = () => false) =>
  new HealthSampler({ system: host.system, log: quietAgentLog, skewMs: () => 0, isWorking }, probes);

describe("damping", () => {
  const [good, bad, none, broken] = [fine("x"), fault("Bad", ["y"]), notObserved("z"), unreadable("z")];
  const shown = (type: "health.gpu" | "health.clock", looks: readonly Judged[]) =>
    looks.reduce<ReturnType<typeof damp> | null>((before, seen) => damp(type, before, seen), null)?.shown;

  it.each([
    ["the first look counts", "health.clock", [bad], bad],
    ["a fault that bars counts at once", "health.gpu", [good, bad], bad],
    ["a warning needs two looks", "health.clock", [good, bad], good],
    ["a warning needs two looks that agree", "health.clock", [good, bad, bad], bad],
    ["looks in between begin anew", "health.clock", [good, bad, good, bad], good],
    ["the way back needs two looks", "health.gpu", [bad, good], bad],
    ["the way back takes two looks", "health.gpu", [bad, good, good], good],
    ["one look that failed changes nothing", "health.gpu", [good, broken], good],
    ["two looks that failed are told", "health.gpu", [good, broken, broken], broken],
    ["a missing tool and an unreadable one are two things", "health.gpu", [none, broken], none],
  ] as const)("%s", (_, type, looks, end) => expect(shown(type, looks)).toEqual(end));

  it("changes at most every second look, except for a fault that bars", () => {
    const looks = fc.array(fc.constantFrom(good, bad, none, broken), { minLength: 2, maxLength: 20 });
    fc.assert(
      fc.property(looks, (all) => {
        let before: ReturnType<typeof damp> | null = null;
        let changed = -2;
        for (const [n, seen] of all.entries()) {
          const next = damp("health.clock", before, seen);
          if (before !== null && next.shown.reason !== before.shown.reason) {
            expect(n - changed).toBeGreaterThanOrEqual(2);
            changed = n;
          }
          before = next;
        }
      }),
    );
  });
});

describe("the sampler", () => {
  const probe = (name: string, everyMs: number, look: () => Promise<Findings>, callsGpuDriver = false): Probe => ({
    ...{ name, everyMs, callsGpuDriver, look },
  });

  it("runs each probe in its rhythm, one after another, and never twice at once", async () => {
    const calls: string[] = [];
    let atWork = 0;
    const look = (name: string) => async (): Promise<Findings> => {
      atWork += 1;
      expect(atWork).toBe(1);
      await Promise.resolve();
      calls.push(name);
      atWork -= 1;
      return { "health.clock": fine(name) };
    };
    const sampler = samplerOf(kept(new HostFolder()), [probe("a", 5, look("a")), probe("b", 20, look("b"))]);
    await Promise.all([sampler.turn(0), sampler.turn(0)]);
    for (const now of [4, 5, 9, 10, 20]) await sampler.turn(now);
    expect(calls.join("")).toBe("abaaab");
  });

  it("takes the worst of what several probes say, and forgets a probe that no longer looks", async () => {
    const one = probe("one", MINUTE, async () => ({ "health.gpu": fine("driver") }));
    const other = probe("other", 10 * MINUTE, async () => ({ "health.gpu": fault("KernelFault", ["Xid 79"]) }));
    const sampler = samplerOf(kept(new HostFolder()), [one, other]);
    await sampler.turn(0);
    expect(said(sampler, 0)).toEqual({ "health.gpu": "False KernelFault" });
    expect(said(sampler, 4 * MINUTE)).toEqual({ "health.gpu": "False KernelFault" });
    expect(said(sampler, 31 * MINUTE)).toEqual({});
  });

  it("leaves the GPU driver alone while a task works, and a task waits for a look that has begun", async () => {
    let working = true;
    let release = (): void => undefined;
    const gpu = probe(
      "gpu",
      MINUTE,
      () => new Promise((resolve) => (release = () => resolve({ "health.gpu": fine("x") }))),
      true,
    );
    const files = probe("files", MINUTE, async () => ({ "health.clock": fine("x") }));
    const sampler = samplerOf(kept(new HostFolder()), [gpu, files], () => working);
    await sampler.turn(0);
    expect(Object.keys(said(sampler, 0))).toEqual(["health.clock"]);
    working = false;
    const turn = sampler.turn(1);
    let isQuiet = false;
    const quiet = sampler.quiet().then(() => (isQuiet = true));
    await Promise.resolve();
    expect(isQuiet).toBe(false);
    release();
    await Promise.all([turn, quiet]);
    expect(Object.keys(said(sampler, 1))).toEqual(["health.clock", "health.gpu"]);
  });

  it("gives a value that the damping holds the time of the look that saw it", async () => {
    const looks = [fault("Bad", ["x"]), fine("y"), fine("y")];
    const memory = probe("one", 1, async () => ({ "health.memory": looks.shift() ?? fine("y") }));
    const sampler = samplerOf(kept(new HostFolder()), [memory]);
    const times: string[] = [];
    for (let now = 0; now < 3; now += 1) {
      const until = Date.now();
      await sampler.turn(now);
      times.push(sampler.conditions(now)[0]?.observed_at ?? "");
      while (Date.now() === until) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(times[1]).toBe(times[0]);
    expect(times[2]).not.toBe(times[0]);
    expect(said(sampler, 2)).toEqual({ "health.memory": "True Healthy" });
  });

  it("keeps a probe's conditions unknown, and never good, if the probe fails twice", async () => {
    let fails = false;
    const flaky = probe("flaky", 1, async () => {
      if (fails) throw new Error("a fault of the probe");
      return { "health.memory": fine("x") };
    });
    const sampler = samplerOf(kept(new HostFolder()), [flaky]);
    await sampler.turn(0);
    fails = true;
    await sampler.turn(1);
    await sampler.turn(2);
    expect(said(sampler, 2)).toEqual({ "health.memory": "Unknown Unreadable" });
  });
});

describe("the looks at a host", () => {
  it("say of a host without tools that nothing was observed", async () => {
    const sampler = samplerOf(kept(new HostFolder()));
    await sampler.turn(0);
    const all = Object.entries(said(sampler, 0));
    expect(all.filter(([, status]) => status !== "Unknown NotObserved")).toEqual([]);
    expect(all.map(([type]) => type)).toEqual([
      ...["hardware.gpus", "hardware.nics", "health.clock", "health.disk_room", "health.disk_wear", "health.disks"],
      ...["health.gpu", "health.kernel", "health.memory", "health.memory_wear"],
    ]);
  });

  it("read NVIDIA's GPUs, and see one that the driver lost", async () => {
    const host = kept(new NvidiaHost({ gpus: 2 }));
    const sampler = samplerOf(host);
    await sampler.turn(0);
    expect(said(sampler, 0)).toMatchObject({
      "hardware.gpus": "True AllShown",
      "health.gpu": "True Healthy",
      "health.gpu_wear": "True Healthy",
    });
    host.gpu(1, { recovery: "Reset" });
    await sampler.turn(10 * MINUTE);
    expect(said(sampler, 10 * MINUTE)).toMatchObject({ "health.gpu": "False GpuNeedsReset" });
    rmSync(host.path("state/gpus/1"), { recursive: true });
    await sampler.turn(20 * MINUTE);
    expect(said(sampler, 20 * MINUTE)).toMatchObject({ "hardware.gpus": "False GpuLost" });
  });

  it("read AMD's GPUs and their counters of RAS", async () => {
    const host = kept(new AmdHost([{ pci: AMD_PCI(0) }, { pci: AMD_PCI(1) }]));
    host.write(`sys/bus/pci/devices/${AMD_PCI(1)}/ras/umc_err_count`, "ue: 0\nce: 3\n");
    const sampler = samplerOf(host);
    await sampler.turn(0);
    expect(said(sampler, 0)).toMatchObject({
      "hardware.gpus": "True AllShown",
      "health.gpu": "True Healthy",
      "health.gpu_wear": "False CorrectedErrors",
    });
  });

  it("read disks, memory, links and the kernel's log, whose lines count once even after a restart", async () => {
    const host = kept(new HostFolder());
    host.tool("smartctl", `case "$*" in *sda) cat <<'J'\n${SMARTCTL_ATA}\nJ\n;; *) exit 2 ;; esac`);
    host.tool("nvme", `cat <<'J'\n${NVME_LOG}\nJ`);
    host.tool("timedatectl", "echo NTPSynchronized=no");
    host.tool("journalctl", `case "$*" in *--after-cursor=*) ;; *) cat <<'J'\n${JOURNAL}\nJ\n;; esac`);
    for (const [file, text] of Object.entries({
      ue_count: "1",
      ce_count: "4",
      "dimm0/dimm_ue_count": "1",
      "dimm0/dimm_label": "CPU1_A1",
    }))
      host.write(`sys/devices/system/edac/mc/mc0/${file}`, `${text}\n`);
    for (const [file, text] of Object.entries({ flags: "0x1003", carrier: "0", "device/vendor": "0x15b3" }))
      host.write(`sys/class/net/eth1/${file}`, `${text}\n`);
    const sampler = samplerOf(host);
    await sampler.turn(0);
    expect(said(sampler, 0)).toMatchObject({
      ...{ "health.memory": "False UncorrectedErrors", "hardware.nics": "False LinkLost" },
      ...{ "health.kernel": "False MachineCheck", "health.clock": "False NotSynchronized" },
    });
    expect(sampler.conditions(0).find(({ type }) => type === "health.memory")?.message).toContain(
      "mc0 CPU1_A1 (1 uncorrected",
    );
    const restarted = samplerOf(host);
    await restarted.turn(0);
    expect(said(restarted, 0)["health.kernel"]).toBe("True Healthy");
  });
});

describe("a grave GPU fault in the kernel's log", () => {
  const line = (cursor: number, message: string): string =>
    JSON.stringify({ __CURSOR: `i=${cursor}`, __MONOTONIC_TIMESTAMP: `${cursor}000`, MESSAGE: message });
  const gpu = async (sampler: HealthSampler, nowMs: number) => {
    await sampler.turn(nowMs);
    return said(sampler, nowMs)["health.gpu"];
  };
  /** A host whose journal has one line, which only a look from the boot on sees. */
  const hostWith = (number: number) => {
    const host = kept(new NvidiaHost({ gpus: 2 }));
    const text = `NVRM: Xid (PCI:${PCI(1).slice(0, -2)}): ${number}, pid=1, a fault`;
    host.tool("journalctl", `case "$*" in *--after-cursor=*) ;; *) cat <<'J'\n${line(5, text)}\nJ\n;; esac`);
    return host;
  };

  it("stands through quiet looks and a restart, until the GPU is reset", async () => {
    const host = hostWith(48);
    const sampler = samplerOf(host);
    for (const look of [0, 1, 2, 3]) expect(await gpu(sampler, look * 10 * MINUTE)).toBe("False KernelFault");
    expect(await gpu(samplerOf(host), 0)).toBe("False KernelFault");
    expect((await lookNow(host.system, quietAgentLog)).conditions()).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: "health.gpu", status: "False", reason: "KernelFault" })]),
    );
    await noteResets(host.system, [PCI(1)], 6_000);
    expect(await gpu(samplerOf(host), 0)).toBe("True Healthy");
  });

  it("counts at a task's look at once, and the watch's own look still sees its line", async () => {
    const host = hostWith(48);
    const seen = (await lookNow(host.system, quietAgentLog)).conditions();
    expect(seen.find(({ type }) => type === "health.gpu")).toMatchObject({ status: "False", reason: "KernelFault" });
    expect(seen.some(({ type }) => type === "health.kernel")).toBe(false);
    expect(await gpu(samplerOf(host), 0)).toBe("False KernelFault");
  });

  it("stands while the journal is not readable, which alone is no health", async () => {
    const host = hostWith(48);
    const sampler = samplerOf(host);
    await gpu(sampler, 0);
    host.tool("journalctl", "exit 1");
    expect(await gpu(sampler, 10 * MINUTE)).toBe("False KernelFault");
    const well = kept(new NvidiaHost({ gpus: 1 }));
    well.tool("journalctl", "exit 1");
    expect((await lookNow(well.system, quietAgentLog)).conditions()).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: "health.gpu", reason: "Unreadable" })]),
    );
  });

  it("ends with the boot", async () => {
    const host = hostWith(79);
    await gpu(samplerOf(host), 0);
    host.tool("journalctl", "exit 0");
    expect(await gpu(samplerOf(host), 0)).toBe("False KernelFault");
    host.write("proc/sys/kernel/random/boot_id", "another-boot\n");
    expect(await gpu(samplerOf(host), 0)).toBe("True Healthy");
  });
});

it("what a task has seen replaces what the sampler saw before, undamped", async () => {
  const seen = (judged: Judged): Probe => ({
    ...{ name: "one", everyMs: MINUTE, callsGpuDriver: false, look: async () => ({ "health.memory": judged }) },
  });
  const host = kept(new HostFolder());
  const sampler = samplerOf(host, [seen(fault("Bad", ["x"]))]);
  await sampler.turn();
  const task = samplerOf(host, [seen(fine("y")), { ...seen(fine("z")), name: "another" }]);
  await task.turn();
  sampler.adopt(task);
  expect(sampler.conditions()).toMatchObject([{ type: "health.memory", status: "True", message: "y" }]);
});

describe("a part of the host that does not answer", () => {
  const times = { timeoutMs: 200, graceMs: 100 };
  const context = (host: HostFolder) => ({ system: host.system, skewMs: 0, wasBad: () => false });

  it("is unreadable, and gets neither another tool nor the same again: a disk", async () => {
    const host = kept(new HostFolder());
    host.write("proc/self/mountinfo", "");
    host.write("sys/class/nvme/nvme0/transport", "pcie\n");
    host.write("sys/class/block/nvme0n1/size", "8\n");
    host.write("sys/class/block/nvme0n1/removable", "0\n");
    host.tool("nvme", `cat <<'J'\n${NVME_LOG}\nJ`);
    host.tool("smartctl", "exec sleep 60");
    const hanging = disksProbe(times);
    for (let n = 0; n < 2; n += 1)
      expect(await hanging.look(context(host))).toMatchObject({ "health.disks": { reason: "Unreadable" } });
    expect(host.calls().map((call) => call.split(" ")[0])).toEqual(["smartctl"]);
    host.tool("smartctl", "echo rubbish");
    expect(await disksProbe(times).look(context(host))).toMatchObject({ "health.disks": { status: "True" } });
    host.tool("nvme", "echo rubbish");
    expect(await disksProbe(times).look(context(host))).toMatchObject({ "health.disks": { reason: "Unreadable" } });
  });

  it("is unreadable, and is not asked again: the counters of RAS", async () => {
    const host = kept(new AmdHost([{ pci: AMD_PCI(0) }]));
    host.write(`sys/bus/pci/devices/${AMD_PCI(0)}/ras/umc_err_count`, "ue: 0\nce: 0\n");
    rmSync(host.path("usr/bin/grep"));
    host.tool("grep", "exec sleep 60");
    const probe = rasProbe(times);
    for (let n = 0; n < 2; n += 1)
      expect(await probe.look(context(host))).toMatchObject({ "health.gpu": { reason: "Unreadable" } });
    expect(host.calls()).toHaveLength(1);
    host.tool("grep", "echo rubbish");
    expect(await rasProbe(times).look(context(host))).toMatchObject({ "health.gpu_wear": { reason: "Unreadable" } });
  });
});

it("the watch tells the agent when the host loses a GPU and no task works, and after an inventory with an unread part", async () => {
  const host = kept(new AmdHost([{ pci: AMD_PCI(0) }, { pci: AMD_PCI(1) }]));
  let working = true;
  let asked = 0;
  const parts = {
    system: host.system,
    log: quietAgentLog,
    skewMs: () => 0,
    isWorking: () => {
      asked += 1;
      return working;
    },
  };
  const watch = new HealthWatch(parts, { firstMs: 0, everyMs: 5, hardwareEveryMs: 0 });
  await watch.beforeInventory();
  const stop = new AbortController();
  let changes = 0;
  const run = watch.run(stop.signal, () => {
    changes += 1;
  });
  await until("the first look", () => (watch.conditions().length > 0 ? true : undefined));
  expect(changes).toBe(0);
  rmSync(host.path(`sys/bus/pci/devices/${AMD_PCI(1)}`), { recursive: true });
  asked = 0;
  await until("several turns after the loss", () => (asked > 12 ? true : undefined));
  expect(changes).toBe(0);
  working = false;
  await until("the change", () => (changes > 0 ? true : undefined));
  await watch.beforeInventory();
  watch.afterInventory({});
  const before = changes;
  watch.afterInventory({ unread: ["disks"] });
  await until("the inventory again", () => (changes > before ? true : undefined));
  stop.abort();
  await run;
});
