import { type Asked, type Invocation, invocationOf } from "./arguments.ts";
import type { Operation } from "./description.ts";
import type { Io } from "./io.ts";
import { withIds } from "./names.ts";
import { operationNamed, verbFlag } from "./operation.ts";
import { plain } from "./output/plain.ts";
import { allPages, presentVersion } from "./pages.ts";
import { namedFlags } from "./program/flags.ts";
import { call, DEADLINE_MS, type Target, targetOf } from "./request.ts";
import { shippedOperations } from "./table/shipped.ts";

export type Item = Readonly<Record<string, unknown>>;

/** The request for an operation. Where a value of the request is the id of an object, the object's name may stand in its place. */
export interface Request {
  readonly words?: Readonly<Record<string, string>>;
  readonly query?: URLSearchParams | Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** A key by which the hub recognizes a repetition of the request. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A hub, as the verbs use it. */
export class Hub {
  readonly target: Target;
  readonly operations: readonly Operation[] = shippedOperations();

  private constructor(target: Target) {
    this.target = target;
  }

  static async open(flags: Readonly<Record<string, unknown>>, io: Io): Promise<Hub> {
    return new Hub(await targetOf(namedFlags(flags), io.env, io.err));
  }

  operation(id: string): Operation {
    return operationNamed(id, this.operations);
  }

  /** Sends a request, and returns the hub's answer; null if the answer is empty. */
  async ask(id: string, request: Request = {}): Promise<unknown> {
    const operation = this.operation(id);
    const invocation = await this.#invocation(operation, request);
    const { method, repeatable, conditional } = operation;
    const headers = {
      ...(conditional && request.headers?.["if-match"] === undefined
        ? { "if-match": await presentVersion(this.target, invocation) }
        : {}),
      ...request.headers,
    };
    const key = request.key ?? crypto.randomUUID();
    const response = await call(this.target, { method, invocation, headers, repeatable, key, deadlineMs: DEADLINE_MS });
    return response.status === 204 ? null : await response.json();
  }

  /** Reads one object. */
  async one(id: string, request: Request): Promise<Item> {
    return (await this.ask(id, request)) as Item;
  }

  /** Reads one object with its version, which a request to change the object has to name. */
  async versioned(id: string, request: Request): Promise<{ readonly item: Item; readonly version: string }> {
    const operation = this.operation(id);
    const invocation = await this.#invocation(operation, request);
    const response = await call(this.target, { method: operation.method, invocation, deadlineMs: DEADLINE_MS });
    return { item: (await response.json()) as Item, version: response.headers.get("etag") ?? "" };
  }

  /** Reads all items of a list. */
  async all(id: string, request: Request = {}): Promise<readonly Item[]> {
    const operation = this.operation(id);
    const invocation = await this.#invocation(operation, request);
    return (await allPages(this.target, operation, invocation)).items ?? [];
  }

  async #invocation(operation: Operation, { words = {}, query = {}, body = null }: Request): Promise<Invocation> {
    const asked: Asked = { words, query: new URLSearchParams(query), body };
    const ask = async (list: Operation, one: Asked) =>
      (await allPages(this.target, list, invocationOf(list, one))).items ?? [];
    const note = (text: string): void => this.target.note(`${plain(text)}\n`);
    return invocationOf(
      operation,
      await withIds(operation, asked, { operations: this.operations, ask, note, flag: verbFlag }),
    );
  }
}
