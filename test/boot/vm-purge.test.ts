import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StepEnd } from "../../agent/system/storage/works.ts";
import { newTaskId } from "../fakes/hub/orders.ts";
import { endBootRun, startBootRun } from "./boot-run.ts";
import { bootImage } from "./image/boot-image.ts";
import { VmHost } from "./vm-host.ts";
import { SHELL_UNIT, SHELL_WANTED } from "./vm-shell.ts";

const REPOSITORY = join(import.meta.dirname, "../..");
const SECRET = "TENANT-SECRET ";
const has = (tool: string, argument: string): boolean =>
  spawnSync(tool, [argument], { stdio: "ignore" }).error === undefined;
const canRun = has("qemu-system-x86_64", "--version") && has("nvme", "version");

/** Makes a disk with nvme-cli, Node.js, the agent's code and the libraries of this computer, whose Debian the guest also runs. */
async function layToolbox(file: string): Promise<void> {
  const folder = `${file}.content`;
  for (const part of ["agent", "shared", "test/support", "package.json", "node_modules/zod"])
    cpSync(join(REPOSITORY, part), join(folder, part), { recursive: true });
  mkdirSync(join(folder, "lib"));
  cpSync(process.execPath, join(folder, "node"));
  const { stdout: libraries } = await execa("sh", [
    "-ec",
    'tool=$(command -v nvme); cp "$tool" "$0"; ldd "$tool"',
    join(folder, "nvme"),
  ]);
  for (const [, path = ""] of libraries.matchAll(/=> (\/\S+)/g))
    cpSync(realpathSync(path), join(folder, "lib", basename(path)));
  await execa("mkfs.ext4", ["-q", "-F", "-d", folder, file]);
}

describe.skipIf(!canRun)("the purge of an emulated NVMe disk (SKIPPED without qemu-system-x86 or nvme-cli)", () => {
  let folder: string;
  let host: VmHost;
  beforeAll(async () => {
    folder = await startBootRun();
    host = new VmHost(join(folder, "vm"), await bootImage(), "purge", "52:54:00:00:00:77");
    host.dataDisks = ["toolbox", "victim", "mounted"];
    await host.install([SHELL_UNIT, SHELL_WANTED]);
    await layToolbox(host.diskFile("toolbox"));
    await execa("mkfs.ext4", ["-q", "-F", host.diskFile("mounted")]);
    const disk = readFileSync(host.diskFile("victim")).fill(SECRET);
    writeFileSync(host.diskFile("victim"), disk);
    host.start();
    await host.answers();
    await host.shell("udevadm trigger --settle --subsystem-match=block");
    const devices = await host.devices();
    await host.shell(`mkdir -p /box /data && mount -o ro ${devices.get("toolbox")} /box`);
    // The guest has the C library of the same Debian, so nvme-cli needs only the further libraries on the disk.
    const tool = '#!/bin/sh\\nLD_LIBRARY_PATH=/box/lib exec /box/nvme "$@"\\n';
    await host.shell(`printf '${tool}' > /usr/sbin/nvme && chmod 755 /usr/sbin/nvme && nvme version`);
  });
  afterAll(async () => {
    await host?.powerCut();
    if (folder !== undefined) await endBootRun(folder);
  });

  const purge = async (serial: string): Promise<StepEnd> => {
    const line = `cd /box && ./node test/support/purge-process.ts / ${newTaskId()} ${serial} 2>/dev/null`;
    return StepEnd.parse(JSON.parse(await host.shell(line, 300_000)));
  };

  it("refuses the disk of the root, a mounted disk, and a disk that is mounted only in another namespace", async () => {
    const mounted = (await host.devices()).get("mounted");
    expect([await purge("root"), await purge("toolbox")]).toMatchObject([
      { outcome: "failed", evidence: { reason: "mounted" } },
      { outcome: "failed", evidence: { reason: "mounted" } },
    ]);
    await host.shell(`setsid unshare -m sh -c 'mount ${mounted} /data && exec sleep 3600' >/dev/null & sleep 3`);
    expect(await purge("mounted")).toMatchObject({
      outcome: "failed",
      message: expect.stringContaining("EBUSY"),
      evidence: { reason: "in_use" },
    });
    expect(await purge("none")).toMatchObject({ evidence: { reason: "not_found" } });
  });

  it("formats a free disk, and nothing of its data is left", async () => {
    expect(readFileSync(host.diskFile("victim")).includes(SECRET)).toBe(true);
    expect(await purge("victim")).toMatchObject({
      outcome: "ok",
      evidence: {
        media_kind: "disk",
        model: "QEMU NVMe Ctrl",
        serial: "victim",
        method: "clear",
        technique: "NVMe format, user data erase",
        verification_result: "all 704 blocks read only the byte 0x00",
      },
    });
    await host.shell("sync");
    expect(readFileSync(host.diskFile("victim")).includes(SECRET)).toBe(false);
  });
});
