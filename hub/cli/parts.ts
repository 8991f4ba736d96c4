import type { Io } from "./io.ts";
import { plain } from "./output/plain.ts";
import { endOf, STATUS, type Status } from "./statuses.ts";

/**
 * Sends the hosts or rows of a command in several requests, each with a part of them. If the hub refuses one of a command's requests, the command
 * still sends the others and reports each refusal.
 */
export class Parts {
  readonly #io: Io;
  #sent = 0;
  readonly #faults: unknown[] = [];

  constructor(io: Io) {
    this.#io = io;
  }

  /**
   * Sends all parts. After the hub has refused the request with one part of the rows, `send` continues with the next part; without a connection to
   * the hub, `send` stops. If no request of the command succeeded, `send` throws the first error.
   */
  async send<T>(parts: readonly (readonly T[])[], send: (part: readonly T[]) => Promise<void>): Promise<Status> {
    let from = 1;
    for (const part of parts) {
      try {
        await send(part);
        this.#sent += 1;
      } catch (error) {
        this.#faults.push(error);
        const [status, message] = endOf(error);
        if (parts.length > 1)
          this.#io.err(plain(`Numbers ${from} to ${from + part.length - 1} of the good rows: ${message.trimEnd()}\n`));
        if (status === STATUS.unreachable) break;
      }
      from += part.length;
    }
    if (this.#sent === 0 && this.#faults.length > 0) throw this.#faults[0];
    return this.#faults.length > 0 ? STATUS.partly : STATUS.done;
  }
}
