import { spawn } from "node:child_process";

/** The user that runs the server. Undefined if this process is not root; the server then runs as the same user. */
export type ServerUser = { name: string; uid: number; gid: number } | undefined;

export type RunResult = {
  /** Null if the program was killed by a signal or could not be started. For a program that could not be started, `output` holds the reason. */
  status: number | null;
  output: string;
};

/** A fixed environment, because the caller's PG* and locale variables would change the behaviour of the server's programs. */
export const SERVER_ENVIRONMENT = { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };

/** Runs a short program to its end as `user`. A program that cannot be started gives a result, not an exception. */
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

/** Asks the system as that user, because modes, groups, ACLs and every parent folder decide. */
export async function canEnter(folder: string, user: ServerUser): Promise<boolean> {
  const { status } = await run("/bin/sh", ["-c", 'cd "$1"', "sh", folder], user);
  return status === 0;
}
