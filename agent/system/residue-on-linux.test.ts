import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareResidue } from "../../shared/residue/compare.ts";
import type { ResidueItem } from "../../shared/residue/items.ts";
import type { ResidueReading, ResidueSnapshot } from "../../shared/residue/snapshot.ts";
import { until } from "../../test/support/until.ts";

/**
 * The tests leave residue on a real kernel and check that the residue snapshot shows the residue. Most of the tests' residue is in private namespaces
 * for processes, network, memory and mounts, so that this computer stays unchanged. The folders in LAYERS get an overlay, which disappears with the
 * mount namespace of the tests.
 */
const PROGRAM = new URL("./residue/main.ts", import.meta.url).pathname;
const TENANT = { login_user: "ann", uid: 30_001 };
const PAUSE_MS = 300;
const LAYERS = ["/etc", "/usr/bin", "/home", "/var/spool"];
const WORLD = `set -e
mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /var/lib; mount -t tmpfs tmpfs /dev/shm
mkdir -p /dev/mqueue; mount -t mqueue mqueue /dev/mqueue
for folder in ${LAYERS.join(" ")}; do
  mkdir -p "/var/lib/layers$folder/upper" "/var/lib/layers$folder/work"
  mount -t overlay overlay -o "lowerdir=$folder,upperdir=/var/lib/layers$folder/upper,workdir=/var/lib/layers$folder/work" "$folder"
done
ip link set lo up
echo ready; exec "$0" -e "process.stdin.resume()"`;
const PRIVATE = ["--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc", "--net", "--ipc", "--uts"];

function obstacle(): string | null {
  if (process.getuid?.() !== 0) return "the tests need root";
  if (PROGRAM.startsWith("/tmp/")) return "the tests hide /tmp, in which this repository is";
  const tried = spawnSync("unshare", [...PRIVATE, "sh", "-c", WORLD.replace(/exec .*/, "true")], { encoding: "utf8" });
  return tried.status === 0 ? null : `the machine allows no private namespaces: ${tried.stderr ?? tried.error}`;
}
const why = obstacle();

function parsed(lines: string): ResidueSnapshot {
  const readings = lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { item: ResidueItem; reading: ResidueReading });
  return Object.fromEntries(readings.map(({ item, reading }) => [item, reading]));
}
const orderOf = (items: readonly ResidueItem[], tenant: typeof TENANT | null = null): string =>
  JSON.stringify({ root: "/", tenant, items, pauseMs: PAUSE_MS });

async function outputOf(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let [text, said] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  const [status] = await once(child, "close");
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${said}`);
  return text;
}

function findings(before: ResidueSnapshot, now: ResidueSnapshot, item: ResidueItem): string[] {
  const judged = compareResidue(before, now, null).items[item];
  if (judged.state === "unreadable") return [`unreadable ${judged.reason}`];
  return judged.state === "clean" ? [] : judged.found.map(({ name, kind }) => `${kind} ${name}`);
}

/** The residue items that the tests make in private namespaces: processes, sockets, memory, users and settings. */
const ITEMS: readonly ResidueItem[] = [
  ...(["accounts", "user_processes", "unpackaged_processes", "fake_kernel_threads", "traced_processes"] as const),
  ...(["listening_sockets", "shared_memory", "temporary_files", "sysctl", "network", "critical_files"] as const),
  ...([
    "cron_and_at",
    "privileges",
    "authorized_keys",
    "user_units",
    "histories_and_caches",
    "preload",
    "ebpf",
  ] as const),
  ...(["namespaces", "mounts"] as const),
  "tenant_processes",
];

describe.skipIf(why !== null)(`residue in private namespaces of this machine${why === null ? "" : `: ${why}`}`, () => {
  let holder: ChildProcess;
  let init = 0;
  const started: ChildProcess[] = [];
  beforeAll(async () => {
    holder = spawn("unshare", [...PRIVATE, "--kill-child", "sh", "-c", WORLD, process.execPath], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    if (holder.stdout !== null) await once(holder.stdout, "data");
    const children = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8").trim();
    init = Number(children);
  });
  afterAll(async () => {
    if (holder.exitCode === null) {
      holder.stdin?.end();
      await once(holder, "exit");
    }
  });

  const inside = (...command: readonly string[]): string[] => [
    "-t",
    String(init),
    "-m",
    "-p",
    "-n",
    "-i",
    "-u",
    "--",
    ...command,
  ];
  const sh = (script: string): void => void execFileSync("nsenter", inside("bash", "-c", script), { stdio: "inherit" });
  const start = (script: string): void => {
    started.push(spawn("nsenter", inside("bash", "-c", script), { stdio: ["ignore", "inherit", "inherit"] }));
  };
  const snapshot = async (): Promise<ResidueSnapshot> =>
    parsed(await outputOf("nsenter", inside(process.execPath, PROGRAM, orderOf(ITEMS, TENANT))));
  const processes = (): string =>
    execFileSync("nsenter", inside("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"), { encoding: "utf8" });

  it("is found by its name, and the host is clean again when it is gone", async () => {
    const baseline = await snapshot();
    const readable = Object.values(baseline).map((reading) => "entries" in reading || reading.unreadable);
    expect(readable).toEqual(ITEMS.map(() => true));

    sh("useradd --create-home --uid 30001 --shell /bin/bash ann");
    sh(
      "mkdir -p /home/ann/.ssh /home/ann/.config/systemd/user && echo 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAB ann' > /home/ann/.ssh/authorized_keys",
    );
    sh("touch /home/ann/.config/systemd/user/x.service /home/ann/.bash_history");
    sh(
      "mkdir -p /var/spool/cron/crontabs /var/spool/cron/atjobs && echo '* * * * * true' > /var/spool/cron/crontabs/ann",
    );
    sh(
      "echo '#!/bin/sh' > /var/spool/cron/atjobs/a00001; echo 'ann ALL=(ALL) ALL' > /etc/sudoers.d/ann; echo /tmp/x.so > /etc/ld.so.preload.left",
    );
    sh(
      "cp /bin/sleep /tmp/miner; cp /bin/sleep /tmp/gone; cp /bin/sleep /tmp/kworker; touch /tmp/left /dev/shm/left /dev/mqueue/left",
    );
    sh("ipcmk -M 4096 >/dev/null; ipcmk -Q >/dev/null; ipcmk -S 1 >/dev/null");
    sh("chmod 4777 /usr/bin/find; echo >> /usr/bin/env");
    sh(
      "echo 80 > /proc/sys/net/ipv4/ip_unprivileged_port_start; for type in dummy bridge veth ifb; do ip link add left0 type $type 2>/dev/null && break; done; ip route add blackhole 10.99.0.0/16",
    );
    start("exec setpriv --reuid 30001 --clear-groups sleep 1000");
    start("exec /tmp/miner 1000");
    start("/tmp/gone 1000 & while [ ! -e /proc/$!/exe ]; do :; done; sleep 0.2; rm /tmp/gone; wait");
    start("exec /tmp/kworker 1000");
    start("exec -a '[rcu_sched]' sleep 1000");
    start(
      `exec ${process.execPath} -e 'require("net").createServer().listen(4444,"0.0.0.0"); require("dgram").createSocket("udp4").bind(5555)'`,
    );
    const attach = process.arch === "arm64" ? 117 : 101;
    start(
      `sleep 999 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; exec perl -e 'syscall(${attach},16,$ARGV[0]+0,0,0)==0 or die $!; sleep 1000' $!`,
    );
    start("exec unshare --mount sh -c 'mount -t tmpfs hidden /mnt && exec sleep 998'");
    await until("all programs run", () => {
      const now = processes();
      const begun = ["/tmp/miner", "/tmp/gone", "/tmp/kworker", "[rcu_sched]", "createServer", "syscall", "sleep 998 "];
      return begun.every((one) => now.includes(one)) ? true : undefined;
    });

    let planted = await snapshot();
    await until("the deleted program and the sockets are seen", async () => {
      planted = await snapshot();
      const seen = [
        ...findings(baseline, planted, "unpackaged_processes"),
        ...findings(baseline, planted, "listening_sockets"),
      ].join();
      return seen.includes("(deleted)") && seen.includes(":5555") ? true : undefined;
    });
    const expected: readonly (readonly [ResidueItem, readonly string[]])[] = [
      ["accounts", ["added account ann", "added group ann", "added password ann"]],
      ["authorized_keys", ["added /home/ann/.ssh/authorized_keys SHA256:"]],
      ["user_units", ["added /home/ann/.config/systemd/user/x.service"]],
      ["histories_and_caches", ["added /home/ann/.bash_history"]],
      ["cron_and_at", ["added /var/spool/cron/crontabs/ann", "added /var/spool/cron/atjobs/a00001"]],
      ["privileges", ["added /etc/sudoers.d/ann"]],
      ["user_processes", ["added ann: /usr/bin/sleep"]],
      ["tenant_processes", ["forbidden ann: /usr/bin/sleep"]],
      ["unpackaged_processes", ["added miner: /tmp/miner", "added gone: /tmp/gone (deleted)"]],
      ["fake_kernel_threads", ["forbidden kworker: /tmp/kworker (pid", "forbidden [rcu_sched]: /usr/bin/sleep (pid"]],
      ["traced_processes", ["forbidden /usr/bin/sleep traced by /usr/bin/perl"]],
      ["listening_sockets", ["added tcp 0.0.0.0:4444", "added udp 0.0.0.0:5555"]],
      [
        "shared_memory",
        [
          "added /dev/shm/left",
          "added /dev/mqueue/left",
          "added shared memory key",
          "added semaphores key",
          "added message queue key",
        ],
      ],
      ["namespaces", ["added mnt namespace of sleep"]],
      ["mounts", ["added in the namespace of sleep: tmpfs hidden on /mnt"]],
      ["temporary_files", ["added /tmp/left"]],
      ["critical_files", ["changed /usr/bin/find", "changed /usr/bin/env"]],
      ["sysctl", ["changed net/ipv4/ip_unprivileged_port_start"]],
      ["network", ["added interface left0", "added route 10.99.0.0/16"]],
    ];
    for (const [item, names] of expected)
      for (const name of names)
        expect(findings(baseline, planted, item), item).toContainEqual(expect.stringContaining(name));

    // `kill -KILL -1` ends every process of the private process namespace except the namespace's first process.
    sh("kill -KILL -1 || true");
    await Promise.all(started.map((child) => child.exitCode ?? child.signalCode ?? once(child, "exit")));
    sh(
      "userdel --remove ann 2>/dev/null; rm -f /etc/sudoers.d/ann /etc/ld.so.preload.left /tmp/* /dev/shm/* /dev/mqueue/*",
    );
    sh(
      "for kind in shm msg sem; do ipcrm --all=$kind; done; ip link del left0; ip route del blackhole 10.99.0.0/16; echo 1024 > /proc/sys/net/ipv4/ip_unprivileged_port_start",
    );
    const layers = LAYERS.toReversed()
      .map((folder) => `umount -l ${folder}`)
      .join("; ");
    sh(layers);
    const left = compareResidue(baseline, await snapshot(), TENANT).items;
    expect(
      ITEMS.map((item) => [item, left[item]]).filter(([, judged]) => (judged as { state: string }).state !== "clean"),
    ).toEqual([]);
  });

  it("is not seen in short jobs, as cron and logrotate start them", async () => {
    const baseline = await snapshot();
    start(
      `for job in 1 2 3 4 5 6; do cp /bin/sleep /tmp/job.$job; setpriv --reuid 30002 --clear-groups /tmp/job.$job 0.02; /tmp/job.$job 0.02; mv /tmp/job.$job /tmp/job.$job.gz
rm /tmp/job.$job.gz; touch /dev/shm/job.$job; rm /dev/shm/job.$job; sleep 0.05; done`,
    );
    const now = await snapshot();
    const judged = compareResidue(baseline, now, TENANT).items;
    expect(
      ITEMS.map((item) => [item, judged[item]]).filter(([, one]) => (one as { state: string }).state !== "clean"),
    ).toEqual([]);
  });
});

describe.skipIf(why !== null)("residue of the whole machine", () => {
  const mark = `muster${randomBytes(3).toString("hex")}`;
  const folder = mkdtempSync(join(tmpdir(), "muster-residue-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  /**
   * Reads residue items of this computer. The test mounts a tmpfs over /var/lib in a separate mount namespace, so that no file stays on this
   * computer.
   */
  const snapshot = async (items: readonly ResidueItem[], setup = "true"): Promise<ResidueSnapshot> => {
    const script = `mount -t tmpfs tmpfs /var/lib && ${setup} && exec "$0" "$@"`;
    const command = ["sh", "-c", script, process.execPath, PROGRAM, orderOf(items)];
    return parsed(await outputOf("unshare", ["--mount", "--propagation", "private", ...command]));
  };

  it("shows another mount namespace and its mounts, also a bind mount, and no longer when they are gone", async () => {
    const items = ["namespaces", "mounts"] as const;
    const mine = (before: ResidueSnapshot, now: ResidueSnapshot): string[] =>
      items.flatMap((item) => findings(before, now, item)).filter((name) => name.includes(mark));
    const before = await snapshot(items);
    copyFileSync("/bin/sleep", join(folder, mark));
    const setup = `mount -t tmpfs ${mark} /mnt && exec ${join(folder, mark)} 1000`;
    const tenant = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", setup], { stdio: "inherit" });
    await until("the tenant's program runs", () =>
      readFileSync(`/proc/${tenant.pid}/comm`, "utf8").trim() === mark ? true : undefined,
    );
    expect(mine(before, await snapshot(items))).toEqual([
      `added mnt namespace of ${mark}`,
      `added in the namespace of ${mark}: tmpfs ${mark} on /mnt`,
    ]);
    tenant.kill("SIGKILL");
    await once(tenant, "exit");
    expect(mine(before, await snapshot(items))).toEqual([]);
    writeFileSync(join(folder, "file"), "");
    const bound = await snapshot(items, `mkdir /var/lib/${mark} && mount --bind ${folder} /var/lib/${mark}`);
    expect(mine(before, bound)).toEqual([expect.stringMatching(new RegExp(`^added .* on /var/lib/${mark}$`))]);
  });

  it("shows a loop device, where the machine has them", async (context) => {
    const image = join(folder, "disk");
    writeFileSync(image, Buffer.alloc(1024 * 1024));
    const before = await snapshot(["block_layers"]);
    const made = spawnSync("losetup", ["--find", "--show", image], { encoding: "utf8" });
    if (made.status !== 0) return context.skip(`the machine has no loop devices: ${made.stderr ?? made.error}`);
    try {
      expect(findings(before, await snapshot(["block_layers"]), "block_layers")).toContain(
        `added loop device of ${image}`,
      );
    } finally {
      execFileSync("losetup", ["--detach", made.stdout.trim()]);
    }
    expect(findings(before, await snapshot(["block_layers"]), "block_layers")).not.toContain(
      `added loop device of ${image}`,
    );
  });
});
