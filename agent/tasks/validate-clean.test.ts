import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compareResidue } from "../../shared/residue/compare.ts";
import { RESIDUE_ITEM_NAMES, RESIDUE_ITEMS, type ResidueItem } from "../../shared/residue/items.ts";
import type { ResidueSnapshot } from "../../shared/residue/snapshot.ts";
import { TASKS } from "../../shared/tasks/index.ts";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { TaskCancelled } from "./cancelled.ts";
import { validateClean } from "./validate-clean.ts";

const TENANT = { login_user: "ann", uid: 1001 };
const PASSWD = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n";
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFk0mSs5b1cXJ3tDPw5TzwPSkAbkNiDQK1sb0d1Kf8sE ann@laptop\n";
const isRoot = process.getuid?.() === 0;

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  host.write("etc/passwd", PASSWD);
  host.write("etc/group", `root:x:0:\ndaemon:x:1:\n${isRoot ? "" : `me:x:${process.getgid?.()}:\n`}`);
  if (!isRoot)
    host.write("etc/passwd", `${PASSWD}me:x:${process.getuid?.()}:${process.getgid?.()}::/nowhere:/bin/sh\n`);
  host.write("etc/shadow", "root:*:19000::::::\n", 0o600);
  host.write("var/lib/dpkg/status", "Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2\n");
  host.write("usr/bin/bash", "a shell", 0o755);
  mkdirSync(host.path("sys/class/block"), { recursive: true });
  host.tool("dpkg", `cat "$MUSTER_ROOT/verify" 2>/dev/null; exit 0`);
  host.tool(
    "ip",
    `case "$*" in *link*) cat "$MUSTER_ROOT/links" 2>/dev/null || echo '[]' ;; *route*) echo '[]' ;; esac`,
  );
  host.tool("tc");
  host.tool("nft", `cat "$MUSTER_ROOT/ruleset" 2>/dev/null; exit 0`);
});
afterEach(() => host.remove());

async function snapshot(allocation: typeof TENANT | null = null): Promise<ResidueSnapshot> {
  const run = { taskId: newTaskId(), signal: new AbortController().signal, progress: () => undefined };
  const reply = await validateClean(host.system, 10)({ allocation, plan: false }, run);
  if (!reply.ok) throw new Error(reply.message);
  return TASKS["node.validate_clean"].result.parse(reply.result).snapshot;
}
const foundIn = (baseline: ResidueSnapshot, now: ResidueSnapshot, item: ResidueItem): string[] => {
  const judged = compareResidue(baseline, now, null).items[item];
  return judged.state === "found" ? judged.found.map(({ name, kind }) => `${kind} ${name}`) : [judged.state];
};

/**
 * Residue in files: the residue item, the expected finding, and the files that cause the finding. A file of the test may stand for a file of the
 * kernel, for example in /sys.
 */
const PLANTS: readonly (readonly [ResidueItem, string, Readonly<Record<string, string>>])[] = [
  ["accounts", "added account ann", { "etc/passwd": `${PASSWD}ann:x:1001:1001::/home/ann:/bin/bash\n` }],
  ["accounts", "changed password root", { "etc/shadow": "root:$y$new:19000::::::\n" }],
  ["authorized_keys", "added /root/.ssh/authorized_keys SHA256:", { "root/.ssh/authorized_keys": KEY }],
  ["authorized_keys", "added /home/ann/.ssh/authorized_keys SHA256:", { "home/ann/.ssh/authorized_keys": KEY }],
  ["sshd_config", "added /etc/ssh/sshd_config.d/x.conf", { "etc/ssh/sshd_config.d/x.conf": "PermitRootLogin yes\n" }],
  ["privileges", "added /etc/sudoers.d/ann", { "etc/sudoers.d/ann": "ann ALL=(ALL) NOPASSWD:ALL\n" }],
  ["privileges", "added /etc/polkit-1/rules.d/1.rules", { "etc/polkit-1/rules.d/1.rules": "yes\n" }],
  ["login_stack", "added /etc/pam.d/x", { "etc/pam.d/x": "auth sufficient pam_permit.so\n" }],
  ["user_units", "added lingering user ann", { "var/lib/systemd/linger/ann": "" }],
  ["user_units", "added /home/ann/.config/systemd/user/x.service", { "home/ann/.config/systemd/user/x.service": "" }],
  ["system_units", "added /etc/systemd/system/x.timer", { "etc/systemd/system/x.timer": "[Timer]\n" }],
  ["system_units", "added /usr/lib/systemd/system/**", { "usr/lib/systemd/system/x.service": "" }],
  ["runtime_units", "added /run/systemd/transient/x.service", { "run/systemd/transient/x.service": "" }],
  ["cron_and_at", "added /etc/cron.d/x", { "etc/cron.d/x": "* * * * * root true\n" }],
  ["cron_and_at", "added /var/spool/cron/crontabs/ann", { "var/spool/cron/crontabs/ann": "* * * * * true\n" }],
  ["cron_and_at", "added /var/spool/cron/atjobs/a0001", { "var/spool/cron/atjobs/a0001": "#!/bin/sh\n" }],
  ["preload", "added /etc/ld.so.preload", { "etc/ld.so.preload": "/tmp/x.so\n" }],
  ["mount_config", "added /etc/fstab", { "etc/fstab": "server:/x /x nfs defaults 0 0\n" }],
  ["containers", "added docker volume data", { "var/lib/docker/volumes/data/_data/x": "" }],
  [
    "containers",
    "added docker container /job of cuda:12",
    { "var/lib/docker/containers/0a/config.v2.json": `{"Name":"/job","Config":{"Image":"cuda:12"}}` },
  ],
  ["containers", "added podman in /home/ann", { "home/ann/.local/share/containers/storage/db.sql": "" }],
  ["namespaces", "added /run/netns/blue", { "run/netns/blue": "" }],
  [
    "mounts",
    "added nfs4 server:/x on /mnt/x",
    { "proc/self/mountinfo": "50 1 0:50 / /mnt/x rw - nfs4 server:/x rw\n" },
  ],
  ["disks", "added disk S-9", { "sys/class/block/sdz/device/serial": "S-9\n" }],
  ["block_layers", "added loop device of /tmp/disk", { "sys/class/block/loop7/loop/backing_file": "/tmp/disk\n" }],
  ["block_layers", "added device mapper secret", { "sys/class/block/dm-3/dm/name": "secret\n" }],
  ["block_layers", "added iSCSI session of iqn.x", { "sys/class/iscsi_session/session1/targetname": "iqn.x\n" }],
  ["swap", "added swap on /swapfile", { "proc/swaps": "Filename Type Size Used Priority\n/swapfile file 1024 0 -2\n" }],
  [
    "hugepages",
    "added hugepages-2048kB/nr_hugepages",
    { "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "8\n" },
  ],
  ["shared_memory", "added /dev/shm/x", { "dev/shm/x": "" }],
  ["temporary_files", "added /tmp/left", { "tmp/left": "" }],
  ["temporary_files", "added /var/tmp/left", { "var/tmp/left": "" }],
  ["crash_dumps", "added /var/lib/systemd/coredump/core.x", { "var/lib/systemd/coredump/core.x": "" }],
  ["histories_and_caches", "added /home/ann/.bash_history", { "home/ann/.bash_history": "ls\n" }],
  ["histories_and_caches", "added /root/.cache/huggingface", { "root/.cache/huggingface/x": "" }],
  ["credentials", "added /home/ann/.weka", { "home/ann/.weka/auth-token.json": "{}" }],
  ["credentials", "added /root/.docker/config.json", { "root/.docker/config.json": "{}" }],
  ["credentials", "added /tmp/krb5cc_1001", { "tmp/krb5cc_1001": "" }],
  ["packages", "added netcat:amd64", { "var/lib/dpkg/status": statusOf("bash", "netcat") }],
  [
    "package_files",
    "added /usr/bin/ls",
    { verify: "??5??????   /usr/bin/ls\n??5?????? c /etc/issue\nmissing     /usr/bin/who\n" },
  ],
  ["package_files", "added /usr/bin/who", {}],
  ["critical_files", "changed /usr/bin/bash", { "usr/bin/bash": "another shell" }],
  ["package_sources", "added /etc/apt/sources.list.d/x.list", { "etc/apt/sources.list.d/x.list": "deb x\n" }],
  [
    "kernel_modules",
    "added module rootkit (OE)",
    { "proc/modules": "nbd 1 0 - Live 0x0\nrootkit 1 0 - Live 0x0 (OE)\n" },
  ],
  ["kernel_modules", "added kernel mark: module loaded by force", { "proc/sys/kernel/tainted": "514\n" }],
  [
    "module_config",
    "added /etc/modprobe.d/x.conf",
    { "etc/modprobe.d/x.conf": "options nvidia NVreg_RegistryDwords=x\n" },
  ],
  ["ebpf", "added /sys/fs/bpf/spy", { "sys/fs/bpf/spy": "" }],
  ["firewall", "added table inet x", { ruleset: "table inet x {\n}\n" }],
  ["network", "added interface wg0 wireguard", { links: `[{"ifname":"wg0","linkinfo":{"info_kind":"wireguard"}}]` }],
  ["network_config", "added /etc/hosts", { "etc/hosts": "10.0.0.1 hub\n" }],
  ["network_config", "added /etc/resolv.conf nameserver 10.9.9.9", { "etc/resolv.conf": "nameserver 10.9.9.9\n" }],
  ["sysctl", "added kernel/core_pattern", { "proc/sys/kernel/core_pattern": "|/tmp/x\n" }],
  ["sysctl", "added /etc/sysctl.d/x.conf", { "etc/sysctl.d/x.conf": "kernel.core_pattern=x\n" }],
  ["boot_config", "changed kernel command line", { "proc/cmdline": "init=/tmp/x\n" }],
  ["boot_files", "added /boot/initrd.img", { "boot/initrd.img": "x" }],
  ["efi_variables", "added Boot0009-8be4df61", { "sys/firmware/efi/efivars/Boot0009-8be4df61": "x" }],
  ["udev_rules", "added /etc/udev/rules.d/x.rules", { "etc/udev/rules.d/x.rules": "" }],
  ["tmpfiles", "added /etc/tmpfiles.d/x.conf", { "etc/tmpfiles.d/x.conf": "" }],
  ["binary_formats", "added /proc/sys/fs/binfmt_misc/x", { "proc/sys/fs/binfmt_misc/x": "enabled\nflags: F\n" }],
  ["shell_profiles", "added /etc/profile.d/x.sh", { "etc/profile.d/x.sh": "" }],
  ["dbus", "added /etc/dbus-1/system.d/x.conf", { "etc/dbus-1/system.d/x.conf": "" }],
  ["apparmor", "added /etc/apparmor.d/x", { "etc/apparmor.d/x": "" }],
  ["host_identity", "changed /etc/hostname", { "etc/hostname": "other\n" }],
  ["cloud_init", "added /var/lib/cloud/scripts/per-boot/x", { "var/lib/cloud/scripts/per-boot/x": "" }],
  ["trust_store", "added /usr/local/share/ca-certificates/x.crt", { "usr/local/share/ca-certificates/x.crt": "" }],
  ["time_servers", "added /etc/chrony/chrony.conf", { "etc/chrony/chrony.conf": "server x\n" }],
  ["rdma", "added 4 virtual functions of eth0", { "sys/class/net/eth0/device/sriov_numvfs": "4\n" }],
];
/** The residue items that only a real kernel can show, which the tests in residue-on-linux.test.ts cover. */
const OF_KERNEL: readonly ResidueItem[] = [
  ...(["tenant_processes", "user_processes", "unpackaged_processes", "fake_kernel_threads"] as const),
  ...(["traced_processes", "listening_sockets", "gpu_state", "gpu_holders"] as const),
];
const OF_DISK: readonly ResidueItem[] = ["ownerless_files", "tenant_files", "setuid_files", "file_capabilities"];

const MODES: Readonly<Record<string, number>> = { "etc/shadow": 0o600, "usr/bin/bash": 0o755 };

function statusOf(...names: readonly string[]): string {
  return names
    .map((name) => `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2\n`)
    .join("\n");
}

describe("validate_clean on a folder that stands for the host", () => {
  it("has a case for each item here or on a real kernel", () => {
    const covered = new Set([...PLANTS.map(([item]) => item), ...OF_KERNEL, ...OF_DISK]);
    expect([...covered].sort()).toEqual([...RESIDUE_ITEM_NAMES].sort());
  });

  it("finds each planted thing by its name, and is clean again when the thing is gone", async () => {
    const baseline = await snapshot();
    const unreadable = Object.entries(compareResidue(baseline, baseline, null).items).filter(
      ([, { state }]) => state !== "clean",
    );
    expect(unreadable).toEqual([]);
    expect(Object.keys(baseline).sort()).toEqual(
      RESIDUE_ITEM_NAMES.filter((item) => RESIDUE_ITEMS[item].rule !== "tenant").sort(),
    );

    const present = new Set(readdirSync(host.root, { recursive: true, encoding: "utf8" }));
    const before = new Map<string, string>();
    for (const [, , files] of PLANTS)
      for (const [name, text] of Object.entries(files)) {
        if (host.has(name) && !before.has(name)) before.set(name, host.read(name));
        host.write(name, text);
      }
    const planted = await snapshot();
    for (const [item, finding] of PLANTS)
      expect(foundIn(baseline, planted, item), item).toContainEqual(expect.stringContaining(finding));

    for (const [name, text] of before) host.write(name, text, MODES[name]);
    for (const name of readdirSync(host.root, { recursive: true, encoding: "utf8" }))
      if (!present.has(name)) rmSync(host.path(name), { recursive: true, force: true });
    const left = Object.entries(compareResidue(baseline, await snapshot(), null).items);
    expect(left.filter(([, { state }]) => state !== "clean")).toEqual([]);
  });

  it("never tells the content of a file, only digests that differ from host to host", async () => {
    host.write("etc/shadow", "root:$y$j9T$secret:19000::::::\n", 0o600);
    const [one, again] = [await snapshot(), await snapshot()];
    expect(JSON.stringify(one)).not.toContain("secret");
    expect(again).toEqual(one);
    host.remove();
    host = new HostFolder();
    host.write("etc/shadow", "root:$y$j9T$secret:19000::::::\n", 0o600);
    expect((await snapshot()).accounts).not.toEqual({ entries: expect.arrayContaining(entriesOf(one, "accounts")) });
  });

  it("keeps the other items when some cannot be read, and gives the reason", async () => {
    host.tool("ip", "echo no netlink >&2; exit 3");
    rmSync(host.path("usr/bin/nft"));
    host.write("proc/modules", "nf_tables 1 0 - Live 0x0\n");
    host.write("var/lib/dpkg/status", "");
    rmSync(host.path("var/lib/dpkg/status"));
    for (let index = 0; index < 600; index += 1) host.write(`tmp/${"long".repeat(20)}${index}`, "");
    const now = await snapshot();
    expect(now.network).toEqual({ unreadable: expect.stringContaining("no netlink") });
    expect(now.firewall).toEqual({ unreadable: expect.stringContaining("Install the package nftables") });
    expect(now.packages).toEqual({ unreadable: expect.stringContaining("dpkg") });
    expect(now.temporary_files).toEqual({ unreadable: expect.stringContaining("600 entries") });
    expect(compareResidue(now, now, null)).toMatchObject({
      verdict: "unreadable",
      items: { accounts: { state: "clean" }, network: { state: "unreadable" } },
    });
  });

  it("ends when the hub cancels it", async () => {
    const abort = new AbortController();
    const run = { taskId: newTaskId(), signal: abort.signal, progress: () => undefined };
    const reply = validateClean(host.system, 10)({ allocation: null, plan: false }, run);
    abort.abort(new TaskCancelled("cancelled", "enough"));
    await expect(reply).rejects.toThrow("enough");
  });
});

const entriesOf = (one: ResidueSnapshot, item: ResidueItem) => {
  const reading = one[item];
  return reading !== undefined && "entries" in reading ? reading.entries : [];
};

describe("the loaded kernel modules", () => {
  it("are no finding if they are files of the host's modules, also when a driver is loaded later", async () => {
    host.write("proc/sys/kernel/osrelease", "6.8.0-1-generic\n");
    host.write("usr/lib/modules/6.8.0-1-generic/modules.dep", "updates/dkms/nvidia-uvm.ko.zst: kernel/x.ko\n");
    const baseline = await snapshot();
    host.write("proc/modules", "nvidia_uvm 1 0 - Live 0x0 (POE)\nnbd 1 0 - Live 0x0\n");
    expect(foundIn(baseline, await snapshot(), "kernel_modules")).toEqual(["clean"]);
    host.write("proc/modules", "nvidia_uvn 1 0 - Live 0x0 (POE)\n");
    expect(foundIn(baseline, await snapshot(), "kernel_modules")).toEqual(["added module nvidia_uvn (POE)"]);
  });
});

describe.skipIf(!isRoot)("validate_clean, as root, on files of other users", () => {
  it("finds files of the tenant, files without an account, setuid programs and their changes", async () => {
    for (const name of ["ping", "su", "mount"]) {
      host.write(`usr/bin/${name}`, "program", 0o755);
      chmodSync(host.path(`usr/bin/${name}`), 0o4755);
    }
    const baseline = await snapshot(TENANT);
    expect(compareResidue(baseline, baseline, TENANT).verdict).toBe("clean");

    host.write("opt/data/a/b", "x");
    chownSync(host.path("opt/data"), TENANT.uid, TENANT.uid);
    chownSync(host.path("opt/data/a"), TENANT.uid, TENANT.uid);
    chownSync(host.path("opt/data/a/b"), TENANT.uid, TENANT.uid);
    host.write("srv/old", "x");
    chownSync(host.path("srv/old"), 4242, 0);
    copyFileSync(host.path("usr/bin/bash"), host.path("srv/bash"));
    chmodSync(host.path("srv/bash"), 0o4755);
    chmodSync(host.path("usr/bin/su"), 0o6777);
    host.write("usr/bin/mount", "worse", 0o755);
    chmodSync(host.path("usr/bin/mount"), 0o4755);
    rmSync(host.path("usr/bin/ping"));
    mkdirSync(host.path("srv/dir"));
    symlinkSync("/etc/shadow", host.path("srv/dir/link"));
    const now = await snapshot(TENANT);
    expect(foundIn(baseline, now, "tenant_files")).toEqual([
      `forbidden /opt/data of user ${TENANT.uid}, group ${TENANT.uid}`,
    ]);
    expect(foundIn(baseline, now, "ownerless_files")).toEqual(["added /srv/old of user 4242, group 0"]);
    expect(foundIn(baseline, now, "setuid_files").sort()).toEqual([
      "added /srv/bash",
      "changed /usr/bin/mount",
      "changed /usr/bin/su",
      "removed /usr/bin/ping",
    ]);
  });

  it("finds a setuid program in a folder whose name is not UTF-8", async () => {
    const baseline = await snapshot();
    const folder = Buffer.concat([Buffer.from(`${host.path("srv")}/`), Buffer.from([0xff, 0xfe])]);
    mkdirSync(host.path("srv"), { recursive: true });
    mkdirSync(folder);
    copyFileSync(host.path("usr/bin/bash"), Buffer.concat([folder, Buffer.from("/sh")]));
    chmodSync(Buffer.concat([folder, Buffer.from("/sh")]), 0o4755);
    expect(foundIn(baseline, await snapshot(), "setuid_files")).toEqual([
      expect.stringMatching(/^added \/srv\/.*\/sh$/),
    ]);
  });
});
