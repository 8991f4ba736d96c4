import type { z } from "zod";
import type { ApiRole } from "../../shared/api/roles.ts";
import type { Tx } from "../db/tx.ts";
import type { ApiDependencies } from "./deps.ts";

export interface Actor {
  readonly name: string;
  readonly role: ApiRole;
}

/** One request as a route sees it: everything parsed. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly actor: Actor;
  readonly requestId: string;
  /** Value of If-Match without its quotes; null when absent. */
  readonly ifMatch: string | null;
  readonly deps: ApiDependencies;
}

/** An answer with its version, for a later If-Match. */
export class Versioned<R> {
  readonly body: R;
  readonly etag: string;
  constructor(body: R, etag: string) {
    this.body = body;
    this.etag = etag;
  }
}

export interface Audit {
  /** e.g. `maas-sites/<id>`. */
  readonly target: string;
  readonly reason?: string;
  /** Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}
export interface Written<R> {
  readonly body: R | Versioned<R>;
  readonly audit: Audit;
}

interface RouteBase<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType> {
  /** The verb of the design, e.g. `createMaasSite`; unique. */
  readonly operationId: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly status: 200 | 201 | 202 | 204;
  readonly response: R;
}
interface ReadRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType>
  extends RouteBase<P, Q, B, R> {
  readonly permission: "public" | "read";
  /** Answered while the database is away too, to whoever has the token of the hub's own folder. */
  readonly withoutDatabase?: true;
  read(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<z.input<R> | Versioned<z.input<R>>>;
}
interface WriteRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType, X>
  extends RouteBase<P, Q, B, R> {
  readonly permission: "write";
  /** The answer holds a secret, so it is not kept for an Idempotency-Key, and none is taken. */
  readonly answersSecret?: true;
  /** What must happen outside a transaction, e.g. asking MAAS or writing a secret. */
  before?(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<X>;
  /** Takes back what `before` did outside the database, when the transaction did not take effect. */
  abandon?(call: Call<z.output<P>, z.output<Q>, z.output<B>>, prepared: X): Promise<void>;
  /** Runs in one transaction with the audit row and the Idempotency-Key's answer. */
  write(call: Call<z.output<P>, z.output<Q>, z.output<B>>, tx: Tx, prepared: X): Promise<Written<z.input<R>>>;
  /** Removes outside the database what the transaction has ended the use of; only once that took effect. Failing, it leaves something that nobody uses. */
  after?(call: Call<z.output<P>, z.output<Q>, z.output<B>>, prepared: X): Promise<void>;
}

/** What a stream is asked for beside its query. */
export interface StreamCall {
  readonly lastEventId: string | undefined;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
}

interface StreamRoute<P extends z.ZodType, Q extends z.ZodType, R extends z.ZodType>
  extends RouteBase<P, Q, z.ZodType, R> {
  readonly permission: "read";
  /** Server-sent events; `response` is the schema of each one's data. */
  stream(call: Call<z.output<P>, z.output<Q>>, about: StreamCall): Promise<ReadableStream<Uint8Array>>;
}

/** A route as the registrar sees it; its types were checked where it was defined. */
export interface Route extends RouteBase<z.ZodType, z.ZodType, z.ZodType, z.ZodType> {
  readonly permission: "public" | "read" | "write";
  readonly withoutDatabase?: true;
  readonly read?: (call: Call) => Promise<unknown>;
  readonly stream?: (call: Call, about: StreamCall) => Promise<ReadableStream<Uint8Array>>;
  readonly answersSecret?: true;
  readonly before?: (call: Call) => Promise<unknown>;
  readonly abandon?: (call: Call, prepared: unknown) => Promise<void>;
  readonly write?: (call: Call, tx: Tx, prepared: unknown) => Promise<Written<unknown>>;
  readonly after?: (call: Call, prepared: unknown) => Promise<void>;
}

/** An answer that holds a secret is kept nowhere, so it can be given only once. */
export const takesIdempotencyKey = ({ method, permission, answersSecret }: Route): boolean =>
  method === "POST" && permission === "write" && answersSecret !== true;

export const readRoute = <P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType>(
  route: ReadRoute<P, Q, B, R>,
): Route => route as unknown as Route;
export const streamRoute = <P extends z.ZodType, Q extends z.ZodType, R extends z.ZodType>(
  route: StreamRoute<P, Q, R>,
): Route => route as unknown as Route;
export const writeRoute = <
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  X = undefined,
>(
  route: WriteRoute<P, Q, B, R, X>,
): Route => route as unknown as Route;
