import { spawn } from "node:child_process";

/**
 * The operating system's user that runs the database server. If the hub's process is not root, the server's user is undefined, and the server runs as
 * the hub's own user.
 */
export type ServerUser = { name: string; uid: number; gid: number } | undefined;

export type RunResult = {
  /**
   * The exit status of the program; null if a signal killed the program or the program could not be started. For a program that could not be started,
   * `output` holds the reason.
   */
  status: number | null;
  output: string;
};

/** A fixed environment for PostgreSQL's programs, because the caller's PG* and locale variables would change their behaviour. */
export const SERVER_ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** For a program that cannot be started, `run` returns a result and throws no exception. */
export function run(program: string, args: readonly string[], user: ServerUser): Promise<RunResult> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      ...identity(user),
      cwd: "/",
      env: SERVER_ENVIRONMENT,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    const collect = (chunk: Buffer) => {
      output += chunk.toString("utf8");
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.on("error", (error) => resolve({ status: null, output: error.message }));
    child.on("close", (status) => resolve({ status, output: output.trim() }));
  });
}

export function identity(user: ServerUser): { uid: number; gid: number } | Record<string, never> {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid };
}

/**
 * To find out whether a user can enter a folder, `canEnter` starts a process of the user that changes into the folder. Only a trial shows whether a
 * user can enter a folder, because modes, groups and ACLs of all parent folders decide.
 */
export async function canEnter(folder: string, user: ServerUser): Promise<boolean> {
  const { status } = await run("/bin/sh", ["-c", 'cd "$1"', "sh", folder], user);
  return status === 0;
}
