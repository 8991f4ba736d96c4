import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import { WebSocketServer } from "ws";
import { ApiError, PROBLEM_TYPE, problemBody } from "../../shared/api/errors.ts";
import { NodeId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { CLOSE_CODES, MAX_FRAME_BYTES } from "../../shared/protocol/version.ts";
import type { TrustChain } from "../../shared/trust.ts";
import { type Listener, listen } from "../db/listen.ts";
import { SESSION_CHANNEL } from "../db/queries/agent-sessions.ts";
import { TASK_CHANNEL } from "../db/queries/tasks.ts";
import type { Db, InTx } from "../db/tx.ts";
import { agentRefusals } from "../metrics/counted/agents.ts";
import { ownPlaces } from "../outbound/own-places.ts";
import { pause } from "../timing/pause.ts";
import type { AgentPackages } from "./agent-packages.ts";
import type { AuthenticatedNode } from "./authenticate.ts";
import type { RenderBootstrapScript } from "./bootstrap-script-route.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { ConnectionAttempts } from "./connection-attempts.ts";
import { Dispatcher, type InputResolvers } from "./dispatch.ts";
import { Gateway } from "./gateway.ts";
import { Guard } from "./guard.ts";
import { HandshakeQueue } from "./handshake-queue.ts";
import { PollChannels } from "./poll-channels.ts";
import { agentRoutes, identify } from "./routes.ts";
import { ServerCertificate } from "./server-certificate.ts";
import { type Session, Sessions } from "./session.ts";
import { SocketChannel } from "./socket-channel.ts";
import type { TaskSigner } from "./task-signer.ts";

export interface AgentListenerOptions {
  readonly db: Db;
  readonly inTx: InTx;
  readonly databaseUrl: string;
  readonly hubId: string;
  readonly hubVersion: string;
  readonly ca: CertificateAuthority;
  readonly signer: TaskSigner;
  /** Returns the chain of signed statements from which hosts learn the hub's keys. */
  readonly trustChain: () => TrustChain;
  /** The host names and addresses under which agents reach the agent listener. */
  readonly serverNames: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly heartbeatMinTtlMs: number;
  readonly resolveInput: InputResolvers;
  /** The hub calls `onTaskEnded` after tasks have ended, so that the parts of the hub that wait for a task read the task's result at once. */
  readonly onTaskEnded?: (() => void) | undefined;
  readonly packages: AgentPackages;
  /** The time limit in milliseconds for one download of an agent package; the default is `PACKAGE_WITHIN_MS`. */
  readonly packageWithinMs?: number;
  readonly bootstrapScript: RenderBootstrapScript;
  /** The limits and budgets of the agent listener; tests may replace the values of `budgets.ts`. */
  readonly limits?: ConstructorParameters<typeof Guard>[0];
  readonly log: Log;
}
export interface AgentListener {
  readonly port: number;
  sessions(): number;
  close(): Promise<void>;
}

/**
 * The largest number of open connections of the agent listener, which drops further connections before TLS begins. The limit `MAX_CONNECTIONS` is
 * high enough for the sockets and requests of all agents of one hub.
 */
const MAX_CONNECTIONS = 20_000;
const HANDSHAKE_WITHIN_MS = 10_000;
/** The time limit for the download of the agent package, which is the time that a host's first boot waits for the package. */
const PACKAGE_WITHIN_MS = 900_000;
/**
 * The time that a stopping hub waits for its connections to end. After the end of its connections, a stopping hub waits at most `CLOSE_WITHIN_MS`
 * more until the database contains the ends of all sessions.
 */
const CLOSE_WITHIN_MS = 3_000;
const CHECK_SESSIONS_EVERY_TICKS = 5;
const CONNECT_PATH = /^\/internal\/v1\/nodes\/([0-9a-f-]{36})\/connect$/;
const TICK_MS = 1_000;
/**
 * The interval at which the agent listener checks whether its TLS certificate is due for renewal. The check of the TLS certificate normally only
 * compares two values in memory.
 */
const CERTIFICATE_CHECK_MS = 1_000;

/**
 * Serves agents over TLS with the hub's own CA. The agent listener checks the clients' certificates itself, because TLS would refuse two kinds of
 * legitimate clients. A client that enrolls has no certificate, and a client that renews its certificate may have an expired certificate.
 */
export async function startAgentListener(options: AgentListenerOptions): Promise<AgentListener> {
  const { log } = options;
  const sessions = new Sessions();
  const dispatcher = new Dispatcher({ ...options, sessions });
  const gateway = new Gateway({ ...options, sessions, dispatcher });
  const guard = new Guard(options.limits);
  const polls = new PollChannels(gateway, guard);
  const attempts = new ConnectionAttempts();
  const { packageWithinMs = PACKAGE_WITHIN_MS } = options;
  const app = agentRoutes({ ...options, packageWithinMs, polls, attempts, guard });
  const server = await createTlsServer(options, attempts, getRequestListener(app.fetch));
  const handshakes = paced(server, attempts);
  server.on("connection", (socket: Socket) => {
    guard.connected(socket);
    if (!socket.destroyed) handshakes.opened(socket);
  });
  const sockets = acceptSockets(server, options, { gateway, guard, log });
  const listener = listenForWork(options, sessions, dispatcher, gateway);
  let ticks = 0;
  const stopTicking = every(TICK_MS, log, async () => {
    await gateway.flushContacts();
    await attempts.flush(options.db);
    for (const { nodeId } of sessions.dropSilent(performance.now()))
      log.warn("silent agent dropped", { node_id: nodeId });
    await polls.sweep();
    gateway.tellTrust(sessions.all().filter((session) => session.settled));
    await guard.tellNoise(options, log);
    if (++ticks % CHECK_SESSIONS_EVERY_TICKS === 0) {
      guard.sweepAddresses();
      await gateway.closeVoid(sessions.all());
    }
    await dispatcher.lapse();
    await dispatcher.offer(sessions.nodeIds);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the agent listener has no port");
  const leave = ownPlaces.add(address.address, address.port);
  return {
    port: address.port,
    sessions: () => sessions.size,
    close: async () => {
      leave();
      await stopTicking();
      await listener.close();
      handshakes.close();
      await closeAll(server, sockets, sessions);
      // When a hub stops, its agent listener ends even if the database is unavailable. If a stopping hub cannot write the ends of its agent sessions
      // to the database, the periodic check for silent nodes on another hub closes these sessions.
      for (const written of await Promise.allSettled([
        gateway.flushContacts(),
        attempts.flush(options.db),
        polls.sweep(),
        drained(gateway),
      ]))
        if (written.status === "rejected")
          log.warn("the ends of some agent sessions could not be written before the hub stopped", {
            error: written.reason,
          });
    },
  };
}

/** Sends a close message to every agent, even to an agent whose session is just being opened, and cuts off agents that do not answer. */
async function closeAll(server: Server, sockets: WebSocketServer, sessions: Sessions): Promise<void> {
  const { code } = CLOSE_CODES.hub_stopping;
  let open = true;
  const closed = new Promise<void>((resolve) => server.close(() => resolve())).then(() => {
    open = false;
  });
  const deadline = performance.now() + CLOSE_WITHIN_MS;
  while (open && performance.now() < deadline) {
    sessions.closeAll("hub_stopping");
    for (const socket of sockets.clients) socket.close(code, "hub_stopping");
    server.closeIdleConnections();
    await Promise.race([closed, sleep(50)]);
  }
  for (const socket of sockets.clients) socket.terminate();
  server.closeAllConnections();
  await closed;
}

/** Waits until the ends of all sessions are written to the database. The handler of a session's close event writes the session's end. */
async function drained(gateway: Gateway): Promise<void> {
  const deadline = performance.now() + CLOSE_WITHIN_MS;
  // A session's close event happens one turn of the event loop after the session's socket has closed.
  do await sleep(20);
  while (gateway.ending > 0 && performance.now() < deadline);
}

interface Parts {
  readonly gateway: Gateway;
  readonly guard: Guard;
  readonly log: Log;
}

function acceptSockets(server: Server, options: AgentListenerOptions, parts: Parts): WebSocketServer {
  const { guard, log } = parts;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
  });
  server.on("upgrade", (request, socket, head) => {
    socket.on("error", (error) => log.debug("socket failed in the upgrade", { error: error.message }));
    const id = CONNECT_PATH.exec(request.url ?? "")?.[1];
    if (id === undefined) return refuse(socket, new ApiError("not_found", "There is no WebSocket at this path."));
    identifyUpgrade({ ...options, guard }, request, id).then(
      (identity) => {
        if (!server.listening) return refuse(socket, new ApiError("unavailable", "The hub is stopping. Try again."));
        sockets.handleUpgrade(request, socket, head, (ws) => new SocketChannel(ws, identity, parts));
      },
      (error: unknown) => {
        if (!(error instanceof ApiError)) log.warn("an agent could not be identified", { error });
        const detail = "The hub cannot check the certificate right now. Try again.";
        refuse(
          socket,
          error instanceof ApiError ? guard.refused(request.socket, error) : new ApiError("unavailable", detail),
        );
      },
    );
  });
  return sockets;
}

async function identifyUpgrade(
  deps: Parameters<typeof identify>[0],
  request: IncomingMessage,
  id: string,
): Promise<AuthenticatedNode> {
  const identity = await identify(deps, request, id, "channel");
  deps.guard.asks(identity.nodeId, "session");
  return identity;
}

/**
 * Makes connections to the agent listener wait in a handshake queue, which starts TLS for them in turn. Without the handshake queue, Node's TLS
 * server would start TLS for all new connections at the same time.
 */
function paced(server: Server, attempts: ConnectionAttempts): HandshakeQueue {
  const [begin] = server.listeners("connection");
  if (begin === undefined) throw new Error("the agent listener has no TLS");
  server.off("connection", begin as (socket: Socket) => void);
  return new HandshakeQueue({
    begin: (socket) => begin.call(server, socket),
    cutShort: (remoteAddress) => attempts.noteCutShort(remoteAddress),
    withinMs: HANDSHAKE_WITHIN_MS,
  });
}

async function createTlsServer(
  options: AgentListenerOptions,
  attempts: ConnectionAttempts,
  handler: ReturnType<typeof getRequestListener>,
): Promise<Server> {
  const certificate = await ServerCertificate.issue(options.ca, options.serverNames);
  const server = createServer(
    {
      ...certificate.context,
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_WITHIN_MS,
      maxHeaderSize: 16_384,
      connectionsCheckingInterval: 5_000,
    },
    (request, response) => {
      attempts.watchRequest(request, response);
      void handler(request, response);
    },
  );
  attempts.watchHandshakes(server);
  server.maxConnections = MAX_CONNECTIONS;
  server.headersTimeout = 15_000;
  server.requestTimeout = 60_000;
  server.keepAliveTimeout = 30_000;
  const timer = setInterval(() => {
    certificate.renewWhenDue(server, new Date()).then(
      (renewed) => renewed && options.log.info("the listener's certificate was renewed"),
      (error: unknown) => options.log.error("the listener's certificate could not be renewed", { error }),
    );
  }, CERTIFICATE_CHECK_MS);
  server.once("close", () => clearInterval(timer));
  return server;
}

function listenForWork(
  options: AgentListenerOptions,
  sessions: Sessions,
  dispatcher: Dispatcher,
  gateway: Gateway,
): Listener {
  const offer = (ids: readonly NodeId[]): void => {
    dispatcher.offer(ids).catch((error: unknown) => options.log.warn("tasks could not be offered", { error }));
  };
  const check = (held: readonly Session[]): void => {
    gateway
      .closeVoid(held)
      .catch((error: unknown) => options.log.warn("agent sessions could not be checked", { error }));
  };
  return listen({
    url: options.databaseUrl,
    applicationName: "muster-gateway",
    channels: [TASK_CHANNEL, SESSION_CHANNEL],
    log: options.log,
    onNotify: (channel, payload) => {
      const [id = "", epoch = ""] = payload.split(" ");
      const nodeId = NodeId.safeParse(id);
      if (!nodeId.success) return;
      if (channel === TASK_CHANNEL) offer([nodeId.data]);
      else if (epoch === "") check([sessions.get(nodeId.data)].filter((session) => session !== undefined));
      else sessions.supersede(nodeId.data, Number(epoch));
    },
    onReconnect: () => {
      check(sessions.all());
      offer(sessions.nodeIds);
    },
  });
}

/**
 * Calls the function `step` for ever, with a pause of `ms` milliseconds after each call. If `step` fails, `every` logs the failure and goes on. The
 * function that `every` returns stops the calls of `step`.
 */
function every(ms: number, log: Log, step: () => Promise<void>): () => Promise<void> {
  const stop = new AbortController();
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await step().catch((error: unknown) => log.warn("the gateway's tick failed", { error }));
      await pause(ms, stop.signal);
    }
  };
  const running = run();
  return () => {
    stop.abort();
    return running;
  };
}

/** Answers a refused WebSocket upgrade with a problem document, like the document that a refused HTTP request gets. */
function refuse(socket: Duplex, error: ApiError): void {
  agentRefusals.add({ code: error.code });
  const problem = problemBody(error);
  const later = error.retryAfterSeconds === undefined ? "" : `retry-after: ${error.retryAfterSeconds}\r\n`;
  const text = JSON.stringify(problem);
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\ncontent-type: ${PROBLEM_TYPE}\r\n${later}content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
    // After a refused WebSocket upgrade, the hub closes the connection even if the client does not close its half.
    () => socket.destroy(),
  );
}
