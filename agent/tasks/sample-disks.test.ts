import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TASKS, type TaskInput } from "../../shared/tasks/index.ts";
import type { SampledDisk } from "../../shared/tasks/sample-disks.ts";
import { DiskHost, mayLoop } from "../../test/fakes/disks/disk-host.ts";
import { KEEP_COMPILE_CACHE, quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { systemAt } from "../system/system.ts";
import { sampleDisks } from "./sample-disks.ts";

const PROGRAM = [process.execPath, join(import.meta.dirname, "../main.ts")];
const SYSTEMD_RUN = `#!/bin/sh
${KEEP_COMPILE_CACHE}
while [ "$1" != -- ]; do shift; done; shift
setsid "$@" < /dev/null >> "$MUSTER_ROOT/state/worker-log" 2>&1 &
`;
const [SEED, OTHER, KEY] = ["0f".repeat(32), "1e".repeat(32), "2d".repeat(32)];
const MOUNTED = "21 1 8:1 / / rw - ext4 /dev/sdz1 rw\n";

let host: DiskHost;
beforeEach(() => {
  if (!mayLoop) return;
  host = new DiskHost();
  host.write("run/systemd/system/.keep", "");
  host.write("proc/sys/kernel/random/boot_id", "boot\n");
  host.write("usr/bin/systemd-run", SYSTEMD_RUN, 0o755);
});
afterEach(() => host?.remove());

async function sample(more: Partial<TaskInput<"node.sample_disks">> = {}): Promise<readonly SampledDisk[]> {
  const run = { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined };
  const order = { seed: SEED, key: KEY, data_only: false, again: [], ...more };
  const reply = await sampleDisks(systemAt(host.root, quietAgentLog, PROGRAM))(order, run);
  if (!reply.ok) throw new Error(reply.message);
  return TASKS["node.sample_disks"].result.parse(reply.result).disks;
}
/** The test writes zeros over a part of the disk, like an erase that ends too early. */
function zero(from: number, bytes: number): void {
  const fd = openSync(host.loop, "r+");
  writeSync(fd, Buffer.alloc(bytes), 0, bytes, from);
  closeSync(fd);
}

describe.skipIf(!mayLoop)("the sample of a disk (SKIPPED without loop devices)", () => {
  it("shows after an erase whether blocks have their earlier content, and changes nothing", async () => {
    const content = readFileSync(host.loop);
    const [before] = await sample();
    expect(before).toMatchObject({
      serial: "S-1",
      bytes: content.length,
      sample: { zeros: 0, unreadable: 0 },
      detail: "",
    });
    const prints = before?.sample?.prints ?? [];
    expect(prints).toHaveLength(64);
    expect(readFileSync(host.loop).equals(content)).toBe(true);
    const again = [{ serial: "S-1", blocks: prints.map(({ block }) => block) }];
    const order = { seed: OTHER, data_only: true, again };
    const same = async () => {
      const [disk] = await sample(order);
      const digests = new Map(disk?.sample?.again.map(({ block, digest }) => [block, digest]));
      return prints.filter(({ block, digest }) => digests.get(block) === digest).length;
    };
    expect(await same(), "nothing was erased").toBe(64);
    zero(0, 8192);
    expect(await same(), "two blocks were erased").toBe(62);
    expect((await sample({ ...order, key: SEED }))[0]?.sample?.again[5]?.digest).not.toBe(prints[5]?.digest);
    zero(0, content.length);
    const [erased] = await sample(order);
    expect([await same(), erased?.sample?.data, erased?.sample?.zeros]).toEqual([0, 0, 704]);
    writeFileSync(host.loop, Buffer.alloc(content.length, 0xff), { flag: "r+" });
    expect((await sample(order))[0]?.sample).toMatchObject({ data: 0, one_byte: 704, prints: [] });
  });

  it.each([
    ["/share1", false],
    ["/usrlocal", false],
    ["/boot/efi", true],
    ["/", true],
  ])("after the deploy, a disk that is mounted at %s is left out: %s", async (path, isLeftOut) => {
    host.write("proc/self/mountinfo", `${MOUNTED}31 21 ${host.number} / ${path} rw - ext4 /dev/nvme0n1 rw\n`);
    const [disk] = await sample({ data_only: true });
    expect([disk?.holds_system, disk?.sample?.data]).toEqual([isLeftOut, isLeftOut ? undefined : 704]);
    expect((await sample())[0]?.sample?.data).toBe(704);
  });

  it("does not list a disk that comes and goes", async () => {
    host.write("sys/class/block/nvme0n1/removable", "1\n");
    expect(await sample()).toEqual([]);
  });

  it("reads a write-protected disk, which an erase may have left out, and names a disk that cannot be read", async () => {
    host.write("sys/class/block/nvme0n1/ro", "1\n");
    expect((await sample({ data_only: true }))[0]?.sample?.data).toBe(704);
    host.write("sys/class/block/nvme0n1/size", "0\n");
    expect((await sample())[0]).toMatchObject({ sample: null, detail: "The disk has no size." });
  });
});
