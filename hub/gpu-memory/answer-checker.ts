import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Question, Reply } from "./answers-thread.ts";
import type { AnswersToCheck, CheckedAnswers } from "./expected-answers.ts";

/**
 * The largest number of GPU challenges whose answers may wait for a check; above this number, `AnswerChecker` refuses a new challenge. The workflow
 * stage of a refused challenge calls `check` again for the same challenge later.
 */
const MOST_WAITING = 64;
/** The time after which a checking thread without work ends. */
const IDLE_MS = 10_000;

interface Waiting {
  readonly resolve: (checked: CheckedAnswers[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Checks the answers of hosts in one thread, one challenge after the other, so that the checks use at most one processor of the hub. The checking
 * thread starts when the hub has a challenge to check, and ends after a while without a challenge.
 */
export class AnswerChecker {
  readonly #waiting = new Map<number, Waiting>();
  readonly #idleMs: number;
  #thread: Worker | null = null;
  #idle: NodeJS.Timeout | null = null;
  #last = 0;
  #isClosed = false;
  constructor(idleMs: number = IDLE_MS) {
    this.#idleMs = idleMs;
  }

  check(check: AnswersToCheck): Promise<CheckedAnswers[]> {
    if (this.#isClosed) return Promise.reject(new Error("The hub stops and checks no more answers of GPUs."));
    if (this.#waiting.size >= MOST_WAITING)
      return Promise.reject(new Error(`${MOST_WAITING} challenges of GPUs wait at this hub. Try again in a minute.`));
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    this.#last += 1;
    const question: Question = { number: this.#last, check };
    return new Promise((resolve, reject) => {
      this.#waiting.set(question.number, { resolve, reject });
      const thread = this.#open();
      thread.ref();
      thread.postMessage(question);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end("The hub stops.");
  }

  #open(): Worker {
    if (this.#thread !== null) return this.#thread;
    // The packaged hub consists of .js files, so the extension of the thread's file is the extension of this module.
    const thread = new Worker(new URL(`./answers-thread${extname(import.meta.url)}`, import.meta.url));
    thread.on("message", (reply: Reply) => this.#settle(reply));
    thread.on("error", (error) => void this.#lost(thread, `The thread that checks answers failed: ${error.message}`));
    thread.on("exit", () => void this.#lost(thread, "The thread that checks answers ended."));
    this.#thread = thread;
    return thread;
  }

  #settle(reply: Reply): void {
    const waiting = this.#waiting.get(reply.number);
    this.#waiting.delete(reply.number);
    if ("checked" in reply) waiting?.resolve(reply.checked);
    else waiting?.reject(new Error(reply.failure));
    if (this.#waiting.size > 0) return;
    this.#thread?.unref();
    this.#idle = setTimeout(() => void this.#end("The thread was idle."), this.#idleMs).unref();
  }

  /**
   * If the checking thread ends by itself, the callers whose answers it has not checked get an error. After the checking thread of GPU answers has
   * ended, the next challenge starts a new thread.
   */
  async #lost(thread: Worker, why: string): Promise<void> {
    if (this.#thread === thread) await this.#end(why);
  }

  async #end(why: string): Promise<void> {
    const thread = this.#thread;
    this.#thread = null;
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
    for (const { reject } of this.#waiting.values()) reject(new Error(why));
    this.#waiting.clear();
    await thread?.terminate();
  }
}
