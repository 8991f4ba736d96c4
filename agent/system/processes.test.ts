import { readlinkSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";

const PROCESSES = 3_000;

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

describe("the list of a host's processes", () => {
  it("is read in slices, between which the agent does its other work", async () => {
    // Each entry of the simulated /proc is a link to the test process, so the list of processes is long and every read is real.
    const own = `/proc/${readlinkSync("/proc/self")}`;
    for (let pid = 1; pid <= PROCESSES; pid += 1) symlinkSync(own, host.path(`proc/${1_000_000 + pid}`));
    let turns = 0;
    let isDone = false;
    const work = (): void => {
      turns += 1;
      if (!isDone) setImmediate(work);
    };
    setImmediate(work);
    const processes = await host.system.processes.read();
    isDone = true;
    expect(processes).toHaveLength(PROCESSES);
    expect(processes[0]).toMatchObject({ comm: expect.any(String), parent: process.ppid });
    expect(turns).toBeGreaterThan(1);
  });

  it("belongs to the machine, so a folder that stands for a host signals none of it", async () => {
    symlinkSync(`/proc/${process.pid}`, host.path(`proc/${process.pid}`));
    const [own] = await host.system.processes.read();
    if (own === undefined) throw new Error("The process was not found.");
    expect(() => host.system.processes.signal(own, "SIGTERM")).toThrow("stands for a host");
  });
});
