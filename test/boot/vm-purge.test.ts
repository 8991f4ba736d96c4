import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PurgeEnd } from "../../agent/system/storage/works.ts";
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
/** The programs that the virtual machine gets from this computer, because the machine's image lacks the programs. */
const TOOLS = ["nvme", "sfdisk"];
/** The data disks that the virtual machine mounts by fstab: one disk with a partition table, and one disk as Muster's first boot makes it. */
const SCRATCH_UUID = "6d757374-6572-4000-8000-000000000011";
const SHARE_UUID = "6d757374-6572-4000-8000-000000000012";
const FSTAB = `LABEL=scratch /scratch ext4 defaults,noatime,nofail 0 2
UUID=${SHARE_UUID} /share1 ext4 defaults,noatime,nofail,x-systemd.device-timeout=30s 0 2
`;

/** Makes a disk with nvme-cli, Node.js, the agent's code and libraries of this computer, which runs the Debian of the virtual machine. */
async function layToolbox(file: string): Promise<void> {
  const folder = `${file}.content`;
  for (const part of ["agent", "shared", "test/support", "package.json", "node_modules/zod"])
    cpSync(join(REPOSITORY, part), join(folder, part), { recursive: true });
  mkdirSync(join(folder, "lib"));
  cpSync(process.execPath, join(folder, "node"));
  for (const name of TOOLS) {
    const copy = 'tool=$(command -v "$1"); cp "$tool" "$0"; ldd "$tool"';
    const { stdout: libraries } = await execa("sh", ["-ec", copy, join(folder, name), name]);
    for (const [, path = ""] of libraries.matchAll(/=> (\/\S+)/g))
      cpSync(realpathSync(path), join(folder, "lib", basename(path)));
  }
  await execa("mkfs.ext4", ["-q", "-F", "-d", folder, file]);
}

describe.skipIf(!canRun)("the purge of an emulated NVMe disk (SKIPPED without qemu-system-x86 or nvme-cli)", () => {
  let folder: string;
  let host: VmHost;
  beforeAll(async () => {
    folder = await startBootRun();
    host = new VmHost(join(folder, "vm"), await bootImage(), "purge", "52:54:00:00:00:77");
    host.dataDisks = ["toolbox", "victim", "mounted", "scratch", "share"];
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
    // The virtual machine has the C library of this computer's Debian, so the disk with the tools needs only the tools' other libraries.
    for (const name of TOOLS) {
      const tool = `#!/bin/sh\\nLD_LIBRARY_PATH=/box/lib exec /box/${name} "$@"\\n`;
      await host.shell(`printf '${tool}' > /usr/sbin/${name} && chmod 755 /usr/sbin/${name} && ${name} --version`);
    }
    await mountByFstab(devices);
  });
  /** Gives the disks `scratch` and `share` their file systems, with data of a tenant, and mounts them by fstab. */
  async function mountByFstab(devices: ReadonlyMap<string, string>): Promise<void> {
    const [scratch, share] = [devices.get("scratch"), devices.get("share")];
    await host.shell(`printf 'label: gpt\\nname=data\\n' | sfdisk -q ${scratch} && udevadm settle`);
    await host.shell(`mkfs.ext4 -q -L scratch -U ${SCRATCH_UUID} ${scratch}p1`);
    await host.shell(`mkfs.ext4 -q -L muster-share1 -U ${SHARE_UUID} ${share} && udevadm settle`);
    await host.shell(`printf '${FSTAB.replaceAll("\n", "\\n")}' >> /etc/fstab && systemctl daemon-reload`);
    await host.shell("mkdir -p /scratch /share1 && mount /scratch && mount /share1");
    await host.shell("for at in /scratch /share1; do chown 1234:4321 $at; chmod 1771 $at; done");
    await host.shell(`for at in /scratch /share1; do yes '${SECRET}' | head -c 4000000 > $at/file; done; sync`);
  }
  afterAll(async () => {
    await host?.powerCut();
    if (folder !== undefined) await endBootRun(folder);
  });

  const purge = async (serial: string, ...mayUnmount: string[]): Promise<PurgeEnd> => {
    const order = [newTaskId(), serial, ...mayUnmount].join(" ");
    const line = `cd /box && ./node test/support/purge-process.ts / ${order} 2>/dev/null`;
    return PurgeEnd.parse(JSON.parse(await host.shell(line, 300_000)));
  };

  it("refuses the disk of the root, a mounted disk, and a disk that is mounted only in another namespace", async () => {
    const mounted = (await host.devices()).get("mounted");
    expect([await purge("root"), await purge("toolbox")]).toMatchObject([
      { outcome: "failed", evidence: { reason: "mounted" } },
      { outcome: "failed", evidence: { reason: "mounted" } },
    ]);
    // The mount namespace of the process also has copies of the machine's other mounts, so the test ends the process before the next purge.
    const inNamespace = `echo $$ > /run/namespace && mount ${mounted} /data && exec sleep 3600`;
    await host.shell(`setsid unshare -m sh -c '${inNamespace}' >/dev/null & sleep 3`);
    expect(await purge("mounted")).toMatchObject({
      outcome: "failed",
      message: expect.stringContaining("EBUSY"),
      evidence: { reason: "in_use" },
    });
    await host.shell('kill "$(cat /run/namespace)"');
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

  it.each([
    ["scratch", "/scratch"],
    ["share", "/share1"],
  ])("purges the mounted disk %s, and its file system is at its place again", async (serial, path) => {
    const device = (await host.devices()).get(serial);
    const state = `sfdisk --dump ${device} 2>/dev/null; blkid -p -o export ${device}*; grep ' ${path} ' /proc/self/mountinfo | cut -d' ' -f3-; stat -c '%u:%g %a' ${path}; systemctl is-active ${path.slice(1)}.mount`;
    const before = await host.shell(state);
    await host.shell("sync");
    expect(readFileSync(host.diskFile(serial)).includes(SECRET)).toBe(true);
    expect(await purge(serial)).toMatchObject({ outcome: "failed", evidence: { reason: "mounted" } });
    expect(await purge(serial, path)).toMatchObject({
      outcome: "ok",
      message: expect.stringContaining("the disk reports the end"),
      evidence: { serial, method: "clear" },
      file_systems: [{ target: path, outcome: "ok", evidence: { mounted_by: "/etc/fstab" } }],
    });
    expect(await host.shell(state)).toBe(before);
    expect(await host.shell(`ls ${path}`)).toBe("lost+found");
    await host.shell("sync");
    expect(readFileSync(host.diskFile(serial)).includes(SECRET)).toBe(false);
  });
});
