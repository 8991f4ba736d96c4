import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface, type Interface } from "node:readline";

/** A process that answers each line on its stdin with one line on its stdout. The started process prints its first line when it is ready. */
export class LineProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  #before: Promise<unknown> = Promise.resolve();
  #errors = "";

  private constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
    // After the end of the process, `ask` reports the end with the process's own output, so the error EPIPE of its stdin tells nothing new.
    child.stdin.on("error", () => undefined);
  }

  static async start(child: ChildProcessWithoutNullStreams): Promise<LineProcess> {
    const started = new LineProcess(child);
    await started.#nextLine();
    return started;
  }

  /** Sends a line to the process and returns the process's answer. A call of `ask` waits for the answers to the earlier calls. */
  ask(line: string): Promise<string> {
    const answer = this.#before.then(() => {
      const next = this.#nextLine();
      this.#child.stdin.write(`${line}\n`);
      return next;
    });
    this.#before = answer.catch(() => undefined);
    return answer;
  }

  #nextLine(): Promise<string> {
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error(`The process has ended: ${this.#errors}`));
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) ended();
      this.#lines.once("close", ended);
      this.#lines.once("line", (line) => {
        this.#lines.off("close", ended);
        resolve(line);
      });
    });
  }
}
