import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { execa } from "execa";
import type { TaskInput, TaskReply, TaskType } from "../../shared/tasks/index.ts";
import { LineProcess } from "./line-process.ts";

const REPOSITORY = realpathSync(new URL("../..", import.meta.url).pathname);
const PROGRAM = relative(REPOSITORY, new URL("./tenant-task.ts", import.meta.url).pathname);
const TOOLS = [
  "useradd",
  "userdel",
  "usermod",
  "groupadd",
  "groupdel",
  "visudo",
  "chattr",
  "xargs",
  "ipcrm",
  "setpriv",
  "getent",
];
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * A shell script that mounts copies over the folders that the agent's tasks change, and new file systems such as `/run` and `/dev`. The script
 * `SETUP` also mounts the repository and Node.js below `$W`, because other mounts of the script may hide them.
 */
const SETUP = `
mkdir -p $W/repository $W/etc $W/home $W/lib $W/spool/cron/crontabs $W/spool/cron/atjobs $W/mail $W/dev $W/outside
touch $W/node
mount --bind "$REPOSITORY" $W/repository
mount --bind "$NODE" $W/node
cp -a /etc/. $W/etc
ln -s ../mail $W/spool/mail
mount -t tmpfs -o mode=755 tenant-world $W/dev
for node in null zero full random urandom tty fuse; do
  if [ -e /dev/$node ]; then touch $W/dev/$node; mount --bind /dev/$node $W/dev/$node; fi
done
mount -t fusectl fusectl /sys/fs/fuse/connections || true
mkdir $W/dev/pts $W/dev/shm $W/dev/mqueue
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts $W/dev/pts
ln -s pts/ptmx $W/dev/ptmx
ln -s /proc/self/fd $W/dev/fd
mount -t tmpfs -o mode=1777 tenant-world $W/dev/shm
mount -t mqueue mqueue $W/dev/mqueue || touch $W/no-mqueue
mount --rbind $W/dev /dev
mount --bind $W/etc /etc
mount --bind $W/home /home
mount --bind $W/lib /var/lib
mount --bind $W/spool /var/spool
mount --bind $W/mail /var/mail
mount -t tmpfs -o mode=755 tenant-world /run
: > /run/ready
exec sleep infinity
`;

/**
 * A shell script that prints the state of a `TenantWorld`, with one line for each file, process and IPC object. Two equal outputs of `SURVEY` mean
 * that the `TenantWorld` has not changed between them.
 */
const SURVEY = `
find /etc /home /run /dev/shm /dev/mqueue /var/lib /var/spool /var/mail $W/outside -printf '%p %y %m %U:%G %s %l %T@ %C@ %i\\n' | LC_ALL=C sort
find /etc /home /var/lib /var/spool /var/mail -type f -exec sha256sum {} + | LC_ALL=C sort
cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg
cat /proc/self/mountinfo | LC_ALL=C sort
awk -v self=$$ 'FNR == 1 { flush() } /^(Name|Pid|PPid|Uid):/ { line = line " " $0 } /^PPid:/ { parent = $2 } /^Pid:/ { pid = $2 }
  function flush() { if (line != "" && pid != self && parent != self) print line; line = "" } END { flush() }' /proc/[0-9]*/status
`;

/**
 * An isolated environment on the computer that runs the tests, for tests that create and remove real accounts. A `TenantWorld` has its own namespaces
 * of mounts, processes and IPC, and copies of the folders that the agent's tasks change. The end of a `TenantWorld` removes its accounts, processes,
 * mounts and files from the computer.
 */
export class TenantWorld {
  readonly folder = mkdtempSync(join(realpathSync(tmpdir()), "muster-tenants-"));
  readonly #holder: ChildProcess;
  #init = 0;
  #tasks: LineProcess | null = null;
  #errors = "";

  private constructor() {
    this.#holder = spawn(
      "unshare",
      [
        "--mount",
        "--pid",
        "--ipc",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation",
        "private",
        "sh",
        "-euc",
        SETUP,
      ],
      { env: this.#env(), stdio: ["ignore", "ignore", "pipe"] },
    );
    this.#holder.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
  }

  static async start(): Promise<TenantWorld> {
    const world = new TenantWorld();
    for (let tries = 0; tries < 600; tries += 1) {
      world.#init = world.#findInit();
      if (world.#init > 0 && existsSync(`/proc/${world.#init}/root/run/ready`) && world.#isCovered()) {
        world.#tasks = await world.#startTasks();
        return world;
      }
      if (world.#holder.exitCode !== null) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await world.end();
    throw new Error(`The world for tenants did not start: ${world.#errors}`);
  }

  #env(): Record<string, string> {
    const compiled = join(this.folder, "compiled");
    const node = realpathSync(process.execPath);
    return { PATH, LC_ALL: "C", W: this.folder, REPOSITORY, NODE: node, NODE_COMPILE_CACHE: compiled };
  }
  #findInit(): number {
    const pid = this.#holder.pid;
    const children = pid === undefined ? "" : readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return Number(children.trim().split(" ")[0] ?? "0");
  }
  #isCovered(): boolean {
    return readFileSync(`/proc/${this.#init}/mountinfo`, "utf8").includes(" /run ");
  }

  #words(argv: readonly string[]): string[] {
    return ["--target", String(this.#init), "--mount", "--pid", "--ipc", "--", ...argv];
  }
  /** One process runs most tasks of a `TenantWorld`, because the start of a process takes as much processor time as a task. */
  #startTasks(): Promise<LineProcess> {
    const child = spawn("nsenter", this.#words([`${this.folder}/node`, `${this.folder}/repository/${PROGRAM}`]), {
      env: this.#env(),
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe"],
    });
    return LineProcess.start(child);
  }
  #enter(argv: readonly string[], env: Record<string, string> = {}) {
    return execa("nsenter", this.#words(argv), {
      reject: false,
      extendEnv: false,
      env: { ...this.#env(), ...env },
      stdin: "ignore",
      cwd: "/",
    });
  }

  async sh(script: string): Promise<string> {
    const { exitCode, stdout, stderr } = await this.#enter(["sh", "-euc", script]);
    if (exitCode !== 0) throw new Error(`The script ended with status ${exitCode}: ${stderr}\n${script}`);
    return stdout;
  }

  /** Runs a Python script as root in the background, and waits until the script prints a line. */
  async start(script: string): Promise<void> {
    const child = spawn("nsenter", this.#words(["python3", "-c", script]), {
      env: this.#env(),
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    await new Promise<void>((resolve, reject) => {
      let errors = "";
      child.stderr.on("data", (text: Buffer) => {
        errors += text.toString();
      });
      child.stdout.once("data", () => resolve());
      // The first process of the Python script may end before its child process prints the line for which `start` waits. The output of the Python
      // script closes when the last process of the script has ended.
      child.once("close", () => reject(new Error(`The process ended before it was ready: ${errors}`)));
    });
    child.unref();
  }

  /** Runs a task of the agent in the process that runs all tasks, or with `env` in a process of its own with these variables. */
  async task<T extends TaskType>(type: T, input: TaskInput<T>, env?: Record<string, string>): Promise<TaskReply<T>> {
    if (env === undefined) {
      const answer = JSON.parse((await this.#tasks?.ask(JSON.stringify([type, input]))) ?? "{}");
      if (answer.reply === undefined) throw new Error(`The task ${type} failed: ${answer.failed}`);
      return answer.reply;
    }
    const { exitCode, stdout, stderr } = await this.#program([type, JSON.stringify(input)], env);
    if (exitCode !== 0) throw new Error(`The task ${type} ended with status ${exitCode}: ${stderr}`);
    return JSON.parse(stdout);
  }

  /**
   * Runs a task of the agent in a process that kills itself before its `before`-th change to the host. `killedTask` returns false if the task ended
   * after fewer than `before` changes.
   */
  async killedTask<T extends TaskType>(type: T, input: TaskInput<T>, before: number): Promise<boolean> {
    const { exitCode, stderr, signal } = await this.#program([type, JSON.stringify(input), String(before)], {});
    // When the child of `nsenter` dies of a signal, `nsenter` dies of the signal too, or ends with 128 plus the signal's number.
    if (signal === "SIGKILL" || exitCode === 137) return true;
    if (exitCode !== 0) throw new Error(`The task ${type} ended with status ${exitCode}: ${stderr}`);
    return false;
  }

  #program(words: readonly string[], env: Record<string, string>) {
    return this.#enter([`${this.folder}/node`, `${this.folder}/repository/${PROGRAM}`, ...words], env);
  }

  survey(): Promise<string> {
    return this.sh(SURVEY);
  }

  async end(): Promise<void> {
    const ended = new Promise((resolve) => this.#holder.once("exit", resolve));
    if (this.#holder.exitCode === null && this.#holder.signalCode === null) {
      if (this.#init > 0) process.kill(this.#init, "SIGKILL");
      else this.#holder.kill("SIGKILL");
      await ended;
    }
    // A failed test may have left immutable files, which `rmSync` cannot remove.
    spawnSync("chattr", ["-R", "-f", "-i", "-a", this.folder]);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Returns the reason why this computer cannot run a `TenantWorld`, or null if it can. */
  static lacks(): string | null {
    if (process.getuid?.() !== 0) return "it needs root";
    const env = { PATH, LC_ALL: "C" };
    const missing = [...TOOLS, "nsenter", "python3"].filter(
      (tool) => spawnSync("sh", ["-c", `command -v ${tool}`], { env }).status !== 0,
    );
    if (missing.length > 0) return `there is no ${missing.join(", ")}`;
    const script = "mount -t tmpfs probe /mnt && mount --bind /mnt /home && mount -t devpts -o newinstance devpts /mnt";
    const tried = spawnSync(
      "unshare",
      ["--mount", "--pid", "--ipc", "--fork", "--mount-proc", "--propagation", "private", "sh", "-euc", script],
      { env, encoding: "utf8" },
    );
    return tried.status === 0 ? null : `namespaces and mounts are forbidden: ${tried.stderr.trim()}`;
  }
}
