import type { z } from "zod";
import type { Right } from "../../shared/api/rights.ts";
import type { AuditSource } from "../db/queries/audit-logs.ts";
import type { Tx } from "../db/tx.ts";
import type { Actor } from "../people/actor.ts";
import type { Asked, Fixed } from "../people/approvals/ask-approval.ts";
import type { Holds } from "../people/credential-watch.ts";
import type { Place } from "../people/place.ts";
import type { ApiDependencies } from "./deps.ts";

export interface Call<P = unknown, Q = unknown, B = unknown> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly actor: Actor;
  /** The address from which the request came; null if the hub does not know the address. */
  readonly address: string | null;
  readonly requestId: string;
  /** The value of the request's If-Match header without its quotes; null if the request has no If-Match header. */
  readonly ifMatch: string | null;
  /** The media types that the client accepts, as its header Accept names them. */
  readonly accept: string | undefined;
  readonly deps: ApiDependencies;
}

/** Returns what each audit entry of a request says about its sender. */
export const sourceOf = ({
  actor,
  address,
  requestId,
}: Pick<Call, "actor" | "address" | "requestId">): AuditSource => ({
  actor: actor.name,
  role: actor.role,
  via: actor.via,
  address,
  requestId,
});

/** An API answer with the version of its resource. To change a resource, a client sends the version that it has read in the header If-Match. */
export class Versioned<R> {
  readonly body: R;
  readonly etag: string;
  constructor(body: R, etag: string) {
    this.body = body;
    this.etag = etag;
  }
}

/** An answer whose media type depends on what the client accepts, such as one of the two formats of the metrics. */
export class Produced {
  readonly contentType: string;
  readonly text: string;
  constructor(contentType: string, text: string) {
    this.contentType = contentType;
    this.text = text;
  }
}

export interface Audit {
  /** The object that the audit row names, for example `maas-sites/<id>`. */
  readonly target: string;
  readonly reason?: string;
  /** Details of the audited action, which never contain a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}
export interface Written<R> {
  readonly body: R | Versioned<R>;
  readonly audit: Audit;
  /**
   * The ids of the objects that the write affected, for a route whose function `fixes` finds the objects that the second person approves. The ids in
   * `touched` must be those of the objects that the second person saw when that person approved the request.
   */
  readonly touched?: readonly string[];
}

interface RouteBase<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType> {
  readonly operationId: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly status: 200 | 201 | 202 | 204;
  /** Which objects the route's requests concern, so that the hub answers 404 for an object outside of the caller's sites. */
  readonly place: Place;
  /** The media type of the route's answer; the default is JSON. A route that produces `text/html` answers with a page without a script. */
  readonly produces?: "text/html" | "text/csv" | "text/plain" | "application/yaml";
  readonly response: R;
  /** Set for a route that accepts its body not only in JSON, but also in other media types. */
  readonly media?: Media;
}

/**
 * The media types besides JSON in which a route accepts its body. A request to a route with further media types may be signed by a sender of
 * readiness signals, and then needs no token.
 */
export interface Media {
  readonly types: readonly string[];
  /** The schema of the body for the API description, because the route's schema `body` checks the content by a function and describes no fields. */
  readonly shown: z.ZodType;
  /** Returns the request's body in the form that it has as plain JSON, whatever the request's media type is. */
  read(request: {
    readonly contentType: string;
    readonly header: (name: string) => string | undefined;
    readonly text: string;
  }): unknown;
}
interface ReadRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType>
  extends RouteBase<P, Q, B, R> {
  readonly permission: "read";
  readonly right: Right;
  /** True if the route also answers a client with the admin token of the hub's state folder while the database is unreachable. */
  readonly withoutDatabase?: true;
  read(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<z.input<R> | Versioned<z.input<R>> | Produced>;
}
/** A route that anybody may call, without a token. */
interface PublicRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType>
  extends RouteBase<P, Q, B, R> {
  readonly permission: "public";
  readonly right: "none";
  readonly place: "everywhere";
  read(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<z.input<R>>;
}
interface WriteRoute<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType, X>
  extends RouteBase<P, Q, B, R> {
  readonly permission: "write";
  readonly right: Right;
  /**
   * Says why this request needs the approval of a second person, by the facts before the change; null if it needs no approval (decision I11). The hub
   * stores the body of a request that waits for a second person's approval, so no route with `secondPerson` accepts a secret in its body.
   */
  secondPerson?(call: Call<z.output<P>, z.output<Q>, z.output<B>>, tx: Tx, fixed: Fixed | null): Promise<Asked | null>;
  /**
   * Finds and locks the objects that the request concerns but does not name, such as the nodes of a filter, so that an approval is for exactly these
   * objects. `fixes` returns null if the request itself names all objects that it concerns.
   */
  fixes?(call: Call<z.output<P>, z.output<Q>, z.output<B>>, tx: Tx): Promise<Fixed | null>;
  /**
   * True if the route's answer holds a secret. The hub never stores an answer with a secret, so a route whose answer holds a secret refuses an
   * Idempotency-Key.
   */
  readonly answersSecret?: true;
  /** Does the work of the route that must happen outside a transaction, e.g. a call to MAAS or the writing of a secret. */
  before?(call: Call<z.output<P>, z.output<Q>, z.output<B>>): Promise<X>;
  /** Undoes what the route's `before` did outside the database, after the route's transaction has failed. */
  abandon?(call: Call<z.output<P>, z.output<Q>, z.output<B>>, prepared: X): Promise<void>;
  /** Performs the route's change, in one transaction with the audit row and the stored answer of the Idempotency-Key. */
  write(call: Call<z.output<P>, z.output<Q>, z.output<B>>, tx: Tx, prepared: X): Promise<Written<z.input<R>>>;
  /**
   * After the commit, removes things outside the database that the route's change made useless, such as a replaced secret. If `after` fails, a
   * useless secret may remain in the secret store, but nothing uses it.
   */
  after?(call: Call<z.output<P>, z.output<Q>, z.output<B>>, prepared: X): Promise<void>;
}

/** What a route with an event stream gets besides the request's parameters and query. */
export interface StreamCall {
  readonly lastEventId: string | undefined;
  /** The signal that aborts when the client of the stream disconnects. */
  readonly signal: AbortSignal;
  /** Says whether the credential of the stream's client is still valid. */
  readonly holds: Holds;
}

interface StreamRoute<P extends z.ZodType, Q extends z.ZodType, R extends z.ZodType>
  extends RouteBase<P, Q, z.ZodType, R> {
  readonly permission: "read";
  readonly right: Right;
  /** In a route with a stream, `response` is the schema of each event's data. */
  stream(call: Call<z.output<P>, z.output<Q>>, about: StreamCall): Promise<ReadableStream<Uint8Array>>;
}

/** A route without its type parameters, because the compiler has checked the route's types where the route is defined. */
export interface Route extends RouteBase<z.ZodType, z.ZodType, z.ZodType, z.ZodType> {
  readonly permission: "public" | "read" | "write";
  readonly right: Right | "none";
  readonly withoutDatabase?: true;
  readonly read?: (call: Call) => Promise<unknown>;
  readonly stream?: (call: Call, about: StreamCall) => Promise<ReadableStream<Uint8Array>>;
  readonly secondPerson?: (call: Call, tx: Tx, fixed: Fixed | null) => Promise<Asked | null>;
  readonly fixes?: (call: Call, tx: Tx) => Promise<Fixed | null>;
  readonly answersSecret?: true;
  readonly before?: (call: Call) => Promise<unknown>;
  readonly abandon?: (call: Call, prepared: unknown) => Promise<void>;
  readonly write?: (call: Call, tx: Tx, prepared: unknown) => Promise<Written<unknown>>;
  readonly after?: (call: Call, prepared: unknown) => Promise<void>;
}

/** The hub never stores an answer that holds a secret, so the hub cannot replay such an answer for an Idempotency-Key. */
export const takesIdempotencyKey = ({ method, permission, answersSecret }: Route): boolean =>
  method === "POST" && permission === "write" && answersSecret !== true;

export const readRoute = <P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R extends z.ZodType>(
  route: ReadRoute<P, Q, B, R> | PublicRoute<P, Q, B, R>,
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
