import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { Attempt } from "../system/attempt.ts";
import type { System } from "../system/system.ts";

/**
 * Thrown when a program that talks to the GPU driver did not end by the program's deadline. No signal ends a program that waits in a hanging GPU
 * driver.
 */
export class DriverWedged extends Error {
  override readonly name = "DriverWedged";
  readonly tool: string;
  readonly where: { readonly pid: number; readonly state: string; readonly wchan: string; readonly isAlive: boolean };
  constructor(tool: string, hung: Extract<Attempt, { kind: "hung" }>) {
    const { pid, state, wchan, isAlive } = hung;
    const end = isAlive ? "It survived SIGKILL and was abandoned" : "It ended only by a signal";
    super(
      `${tool} did not answer in time: process ${pid}, state ${state}, waiting in ${wchan || "an unknown place"}. ${end}. Reboot the host.`,
    );
    this.tool = tool;
    this.where = { pid, state, wchan, isAlive };
  }
}

export class ToolMissing extends Error {
  override readonly name = "ToolMissing";
}

/** Thrown when the vendor's tool fails, or when its output about the GPUs has no known form. */
export class StateUnreadable extends Error {
  override readonly name = "StateUnreadable";
}

export interface Ended {
  readonly exitCode: number;
  readonly stdout: string;
  /** The last part of a GPU tool's output, as one line for a message. */
  readonly said: string;
}

const MOST_SAID = 200;

/**
 * Runs a program that talks to the GPU driver. `callDriver` throws `DriverWedged` if the program hangs, and `ToolMissing` if the program is not
 * installed.
 */
export async function callDriver(
  system: System,
  tool: string,
  args: readonly string[],
  options: { readonly timeoutMs: number; readonly graceMs: number; readonly input?: string },
): Promise<Ended> {
  const ran = await system.attempt(tool, args, options);
  if (ran.kind === "hung") throw new DriverWedged(tool, ran);
  if (ran.kind === "missing") throw new ToolMissing(ran.message);
  return { exitCode: ran.exitCode, stdout: ran.stdout, said: lastWords(`${ran.stdout}\n${ran.stderr}`) };
}

/** `lastWords` removes secrets before it cuts the text, because a cut may remove the name before a secret, by which the secret is found. */
const lastWords = (text: string): string => withoutCredentials(text).trim().replace(/\s+/g, " ").slice(-MOST_SAID);
