import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { NODE_ON_HOST, REPOSITORY_ON_HOST } from "../fakes/maas/host/own-linux.ts";

const COMMAND_TIMEOUT_MS = 120_000;
const run = promisify(execFile);

/**
 * Runs commands on a host with a Linux of its own. A command does not block this process, because a process that cannot see for seconds that the hub
 * has closed an idle connection sends its next request on this connection.
 */
export class HostShell {
  readonly #folder: string;
  constructor(folder: string) {
    this.#folder = folder;
  }

  sh(uid: number, script: string): Promise<string> {
    const user = ["setpriv", "--reuid", String(uid), "--regid", String(uid), "--clear-groups", "--"];
    return this.#run([...(uid === 0 ? [] : user), "sh", "-euc", script]);
  }

  program(path: string, ...args: readonly string[]): Promise<string> {
    return this.#run([NODE_ON_HOST, `${REPOSITORY_ON_HOST}/${path}`, ...args]);
  }

  async #run(command: readonly string[]): Promise<string> {
    const spaces = ["--user", "--mount", "--pid", "--net", "--ipc", "--uts"];
    const running = run(
      "nsenter",
      ["--target", String(this.#firstProcess()), ...spaces, "--", "sh", "-euc", 'cd /; exec "$@"', "sh", ...command],
      {
        timeout: COMMAND_TIMEOUT_MS,
        maxBuffer: 64 * 1024 * 1024,
        env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8" },
      },
    );
    running.child.stdin?.end();
    return (await running).stdout;
  }

  /** The pid of the host's first process, which is a grandchild of the host's unit `muster-agent.service`. */
  #firstProcess(): number {
    const file = join(this.#folder, "run/units/muster-agent.service.pid");
    const unit = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
    const first = childrenOf(unit).flatMap(childrenOf)[0];
    if (first === undefined) throw new Error("The host does not run.");
    return first;
  }
}

function childrenOf(pid: number): number[] {
  const file = `/proc/${pid}/task/${pid}/children`;
  return pid > 0 && existsSync(file) ? readFileSync(file, "utf8").trim().split(" ").filter(Boolean).map(Number) : [];
}
