/**
 * Builds a Linux for one simulated host: new namespaces in which the host's folder is `/`, and this computer's programs are `/usr`. In the host's
 * namespaces an ordinary user of this computer is root, and may make accounts with uids of their own. When the first process of the host's namespaces
 * ends, the kernel ends all processes of the host.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Server } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { compileCacheVariables } from "../../../config/compile-cache.ts";

const SCRIPT = new URL("own-linux.sh", import.meta.url).pathname;
const REPOSITORY = new URL("../../../..", import.meta.url).pathname;
/** The program that hands the host's listening sockets to `own-linux.ts`, as a path in the repository. */
const LISTEN_PROGRAM = relative(REPOSITORY, new URL("own-linux-ports.ts", import.meta.url).pathname);
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** The tools that build a host's Linux or that the agent runs on the host, each with its Debian package. */
const TOOLS: Readonly<Record<string, string>> = {
  unshare: "util-linux",
  nsenter: "util-linux",
  setpriv: "util-linux",
  newuidmap: "uidmap",
  newgidmap: "uidmap",
  ip: "iproute2",
  tc: "iproute2",
  getcap: "libcap2-bin",
  dpkg: "dpkg",
  useradd: "passwd",
  chattr: "e2fsprogs",
};
/** How many uids and gids a simulated host has. The uids of a host must include 65,534 of `nobody`, and those of tenants' accounts from 20,000 on. */
const IDS = 65_536;
/** The first uid of a host's accounts if root runs the tests and `/etc/subuid` has no line for root. systemd leaves these uids to containers. */
const UNUSED_IDS = 1_878_982_656;
// On a loaded computer the trial waits for its turn again and again.
const PROBE_TIMEOUT_MS = 120_000;
const MAPPED_WITHIN_MS = 10_000;

export interface OwnLinux {
  /** The folder that is `/` for the simulated host. */
  readonly root: string;
  readonly hostname: string;
  /** The ports at 127.0.0.1 of this computer that the host reaches at its own 127.0.0.1. */
  readonly ports: readonly number[];
  /** The command line of the host's only service, with paths as the host sees them. */
  readonly command: readonly string[];
}

export const NODE_ON_HOST = "/snap/muster/node";
export const REPOSITORY_ON_HOST = "/snap/muster/repository";

/** Starts a simulated host in a process that ends with the status of the host's only service. */
export async function startOwnLinux(host: OwnLinux): Promise<ChildProcess> {
  const users = await newUserNamespace();
  try {
    const enter = ["nsenter", `--user=/proc/${users.pid}/ns/user`, "--setuid", "0", "--setgid", "0", "--"];
    // When `own-linux.ts` is killed, the kernel ends `unshare`, and with it all processes of the host.
    const bound = ["setpriv", "--pdeathsig", "KILL", "--"];
    const spaces = [
      "--mount",
      "--pid",
      "--net",
      "--ipc",
      "--uts",
      "--fork",
      "--kill-child",
      "--propagation",
      "private",
    ];
    const [program = "", ...words] = [...enter, ...bound, "unshare", ...spaces, "--", "sh", SCRIPT, ...host.command];
    const child = spawn(program, words, {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: {
        PATH,
        LC_ALL: "C",
        ROOT: host.root,
        NODE: process.execPath,
        REPOSITORY,
        HOSTNAME_OF_HOST: host.hostname,
        LISTEN_PROGRAM: `${REPOSITORY_ON_HOST}/${LISTEN_PROGRAM}`,
        PORTS: host.ports.join(" "),
        COMPILE_CACHE: compileCacheOnHost(),
      },
    });
    if (child.pid === undefined) throw new Error("The program nsenter could not be started.");
    child.on("message", (told, server) => serve((told as { port: number }).port, server as unknown as Server));
    await once(child, "disconnect");
    return child;
  } finally {
    users.kill("SIGKILL");
  }
}

/** The variables of the compile cache as the simulated host has them. A cache outside the repository is not there for the host. */
function compileCacheOnHost(): string {
  const { NODE_COMPILE_CACHE: folder, ...rest } = compileCacheVariables();
  const inside = folder === undefined ? ".." : relative(REPOSITORY, folder);
  if (inside.startsWith("..")) return "";
  const onHost = { NODE_COMPILE_CACHE: `${REPOSITORY_ON_HOST}/${inside}`, ...rest };
  return Object.entries(onHost)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

function serve(port: number, server: Server): void {
  server.on("connection", (inner) => {
    const outer = connect(port, "127.0.0.1");
    inner.pipe(outer).pipe(inner);
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      // A connection that breaks on one side of `serve` also breaks on the other side.
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
}

/** Starts a process in a new user namespace, in which the user of `own-linux.ts` is root. */
async function newUserNamespace(): Promise<ChildProcess & { pid: number }> {
  const holder = spawn("unshare", ["--user", "sleep", "infinity"], { env: { PATH }, stdio: "ignore" });
  const { pid } = holder;
  if (pid === undefined) throw new Error("The program unshare could not be started.");
  const own = readlinkSync("/proc/self/ns/user");
  for (const deadline = Date.now() + MAPPED_WITHIN_MS; ; ) {
    if (holder.exitCode !== null || Date.now() > deadline)
      throw new Error("This machine lets this user make no user namespace.");
    if (readlinkSync(`/proc/${pid}/ns/user`) !== own) break;
    await sleep(10);
  }
  try {
    const { uid, gid, username } = userInfo();
    mapIds(pid, "uid", uid, username);
    mapIds(pid, "gid", gid, username);
  } catch (error) {
    holder.kill("SIGKILL");
    throw error;
  }
  return Object.assign(holder, { pid });
}

/** Maps the user's own id to the id 0 of the namespace, and unused ids of this computer to the ids from 1 on. */
function mapIds(pid: number, kind: "uid" | "gid", own: number, username: string): void {
  const first = firstSubId(`/etc/sub${kind}`, username, own);
  if (first !== null)
    execFileSync(`new${kind}map`, [pid, 0, own, 1, 1, first, IDS - 1].map(String), { env: { PATH }, stdio: "pipe" });
  else if (own === 0) writeFileSync(`/proc/${pid}/${kind}_map`, `0 0 1\n1 ${UNUSED_IDS} ${IDS - 1}\n`);
  else throw new Error(`/etc/sub${kind} gives the user ${username} no ${IDS} ids.`);
}

function firstSubId(file: string, username: string, own: number): number | null {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  const ranges = lines.map((line) => line.split(":"));
  const range = ranges.find(
    ([owner, , count]) => [username, String(own)].includes(owner ?? "") && Number(count) >= IDS,
  );
  return range === undefined ? null : Number(range[1]);
}

/** The reason why the user cannot start a simulated host with a Linux of its own on this computer, or null. */
export async function ownLinuxObstacle(): Promise<string | null> {
  const missing = Object.entries(TOOLS).filter(
    ([tool]) => spawnSync("sh", ["-c", `command -v ${tool}`], { env: { PATH } }).status !== 0,
  );
  if (missing.length > 0)
    return `these programs are missing: ${missing.map(([tool, name]) => `${tool} (Debian package ${name})`).join(", ")}`;
  const folder = mkdtempSync(join(tmpdir(), "muster-own-linux-"));
  try {
    const probe = spawnSync(process.execPath, [import.meta.filename, "--probe", folder], {
      encoding: "utf8",
      timeout: PROBE_TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    if (probe.status === 0) return null;
    const said = probe.stderr.trim().split("\n").at(-1);
    return said === undefined || said === "" ? `the trial ended with ${probe.status ?? probe.signal}` : said;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const portOf = (url: string): number => Number(new URL(url).port);

async function runAgent(root: string): Promise<ChildProcess> {
  const json = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8")) as Record<string, unknown>;
  const { root: _folder, ...config } = json("etc/muster/agent.json");
  const ports = [portOf(String(config["hub_url"])), portOf(String(json("run/simulated-host.json")["control"]))];
  const file = "/etc/muster/agent-of-own-linux.json";
  // For a host with a Linux of its own, the agent's configuration leaves out the root folder, because that folder is `/` there.
  writeFileSync(join(root, file), JSON.stringify(config), { mode: 0o600 });
  const command = [NODE_ON_HOST, `${REPOSITORY_ON_HOST}/agent/main.ts`, "--config", file];
  return startOwnLinux({ root, hostname: readFileSync(join(root, "etc/hostname"), "utf8").trim(), ports, command });
}

async function main(words: readonly string[]): Promise<number> {
  // A stop of the simulated host sends SIGTERM to the whole process group, but `own-linux.ts` ends only when the host has ended.
  process.on("SIGTERM", () => undefined);
  const [first = "", folder = ""] = words;
  const child =
    first === "--probe"
      ? await startOwnLinux({ root: folder, hostname: "probe", ports: [1], command: ["true"] })
      : await runAgent(first);
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode ?? 1;
}

if (import.meta.main) {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
  // `process.exit` ends the connections to the ended host that are still open.
  process.exit();
}
