import { setTimeout as sleep } from "node:timers/promises";
import { AGENT_REPEATS_WITHIN_SECONDS } from "../shared/condition-types.ts";
import { AgentFrame, type HubFrame } from "../shared/protocol/frames.ts";
import { PROTOCOL_VERSION } from "../shared/protocol/version.ts";
import type { ReadinessSignal } from "../shared/readiness.ts";
import { VERSION } from "../shared/version.ts";
import { attemptPlan, edgeJitterMs, heartbeatPauseMs, renewAt } from "./backoff.ts";
import { type Channel, type ChannelEnd, ChannelRefused } from "./channel.ts";
import type { Config } from "./config.ts";
import type { HealthWatch } from "./health/watch.ts";
import { HubRefusal, isOtherCa } from "./https.ts";
import type { Identity, IdentityStore } from "./identity.ts";
import type { Journal } from "./journal.ts";
import type { Log } from "./log.ts";
import { openLongPoll } from "./long-poll.ts";
import { readinessSignal, saysTheSame } from "./readiness.ts";
import type { Runner } from "./runner.ts";
import { openSocket } from "./socket.ts";
import type { System } from "./system/system.ts";
import { Transports } from "./transports.ts";
import type { TrustStore } from "./trust.ts";

export interface AgentParts {
  readonly config: Config;
  readonly system: System;
  readonly identities: IdentityStore;
  readonly trust: TrustStore;
  readonly journal: Journal;
  readonly log: Log;
  readonly health: HealthWatch;
}

const HEALTH_EVERY_MS = 30_000;
/** If the agent's last readiness report is this old, the agent's next health check repeats the report even if nothing has changed. */
const READINESS_EVERY_MS = AGENT_REPEATS_WITHIN_SECONDS * 1000 - HEALTH_EVERY_MS;
/**
 * The interval of the agent's health checks until the host's first boot has ended well. Until the first boot has ended, health checks are frequent,
 * because the hub's onboarding waits for the end of the boot.
 */
const SETTLING_EVERY_MS = 2_000;
const RENEW_CHECK_MS = 60_000;
/** How often the agent retries an identity that the hub refused, because an operator may have removed the reason of the refusal. */
const REFUSED_PAUSE_MS = 60_000;
const AT_ONCE: ReadonlySet<ChannelEnd["reason"]> = new Set([
  "retry_socket",
  "renewed",
  "certificate_expired",
  "certificate_replaced",
]);
const NODE_DELETED = "node_deleted";
const isAboutIdentity = (code: string): boolean => code.startsWith("certificate_") || code === NODE_DELETED;
/**
 * The reasons for the end of a channel to the hub after which the agent reconnects slowly. The reason `superseded` means that the hub closed the
 * channel because another host connected with this agent's identity. If two hosts with one identity reconnected at once, they would displace each
 * other all the time.
 */
const SLOWLY: readonly ChannelEnd["reason"][] = ["superseded", "protocol_unsupported", "rate_limited"];
const DIGEST_LIMIT = 1000;
const CLOSE_WITHIN_MS = 2_000;

/** Keeps the host enrolled and connected to the hub, whatever happens to the network. */
export class Agent {
  readonly #parts: AgentParts;
  readonly #stop = new AbortController();
  readonly #transports = new Transports();
  #runner: Runner | null = null;
  #channel: Channel | null = null;
  /** The agent's newest identity, which a certificate renewal may replace while a channel to the hub is open. */
  #identity: Identity | null = null;
  /**
   * The earliest time, by a monotonic clock, of the agent's next certificate renewal. Without a minimum pause between renewals, a certificate with a
   * very short life would cause constant reconnects.
   */
  #renewNextAt = 0;
  #lastSignal: ReadinessSignal | null = null;
  #signalPending = false;
  #trusting: Promise<void> = Promise.resolve();
  #ttlMs = 10_000;
  /** The time in the hub's last welcome frame, and the monotonic time of its arrival; null before the first welcome frame. */
  #welcomed: { readonly hubMs: number; readonly at: number } | null = null;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  use(runner: Runner): void {
    this.#runner = runner;
  }

  /**
   * The hub's present time, computed from the hub's last welcome frame. The agent checks the deadlines of orders against the hub's clock, because the
   * host's clock may be wrong.
   */
  now = (): Date =>
    new Date(this.#welcomed === null ? Date.now() : this.#welcomed.hubMs + performance.now() - this.#welcomed.at);

  /**
   * By how many milliseconds the hub's clock is ahead of the host's present clock. A person or a time server may change the host's clock while the
   * agent is connected.
   */
  skewMs = (): number => this.now().getTime() - Date.now();

  /** Sends a frame to the hub, but drops a frame that the protocol forbids, because the hub would close the connection for it. */
  send = (frame: AgentFrame): void => {
    const checked = AgentFrame.safeParse(frame);
    if (checked.success) this.#channel?.send(checked.data);
    else
      this.#parts.log.error("a frame is not what the protocol allows and is not sent", {
        type: frame.type,
        faults: checked.error.issues.slice(0, 5).map((issue) => `${issue.path.join(".")}: ${issue.message}`),
      });
  };

  stop(): void {
    this.#stop.abort();
  }

  /** After a call of `stop()`, the agent ends running tasks, sends the tasks' last frames and closes the channel. */
  async run(): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#stop.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await this.#runner?.recover();
    const stop = this.#stop.signal;
    void this.#parts.health.run(
      stop,
      () => void (this.#channel === null || this.#tellInventory(stop).catch(() => undefined)),
    );
    await Promise.race([this.#keepConnected(), stopped]);
    await this.#runner?.stop();
    this.#channel?.close("stopped");
    await Promise.race([this.#channel?.ended, sleep(CLOSE_WITHIN_MS)]);
  }

  async #keepConnected(): Promise<void> {
    let failures = 0;
    for (let first = true; !this.#stop.signal.aborted; first = false) {
      const { beforeMs, afterMs } = attemptPlan(failures, Math.random());
      // After its start the agent connects to the hub without a random pause, because hosts do not all boot at the same moment.
      if (!first) await this.#pause(beforeMs);
      const end = await this.#attempt(failures);
      if (end === null || end.reason === "bad_frame") {
        failures += 1;
        await this.#pause(afterMs);
      } else {
        failures = 0;
        if (!AT_ONCE.has(end.reason)) await this.#pause(edgeJitterMs(this.#ttlMs, Math.random()));
      }
    }
  }

  /** Makes one attempt to connect to the hub, and returns null if the hub sent no welcome frame. */
  async #attempt(failures: number): Promise<ChannelEnd | null> {
    const { log } = this.#parts;
    try {
      this.#identity = await this.#readOrEnroll();
      if (this.#identity === null) return null;
      const channel = await this.#open(this.#identity);
      this.#channel = channel;
      log.info("connected", {
        channel: channel.kind,
        session_epoch: channel.welcome.session_epoch,
        heartbeat_ttl_ms: channel.welcome.heartbeat_ttl_ms,
      });
      const end = await this.#serve(channel);
      log.info("disconnected", { reason: end.reason, detail: end.message });
      if (SLOWLY.includes(end.reason)) await this.#pauseLong();
      if (end.reason === "identity_revoked") await this.#afterRefusal(this.#identity);
      return end;
    } catch (error) {
      log.warn("no connection to the hub", { error, attempt: failures + 1 });
      await this.#askForTrust(error);
      if (error instanceof ChannelRefused && this.#identity !== null && isAboutIdentity(error.code))
        await this.#afterRefusal(this.#identity);
      else if (error instanceof ChannelRefused && SLOWLY.some((reason) => reason === error.code))
        await this.#pauseLong();
      return null;
    }
  }

  async #readOrEnroll(): Promise<Identity | null> {
    const { identities, log } = this.#parts;
    const stored = await identities.read();
    if (stored !== null && stored.notAfter.getTime() > Date.now()) return stored;
    // Only the hub decides whether the agent's certificate has expired, because the host's clock may be wrong.
    if (stored !== null) return this.#afterRefusal(stored);
    try {
      return await identities.enroll();
    } catch (error) {
      const code = error instanceof HubRefusal ? error.code : null;
      log.warn("enrollment was refused or did not get through", { code, error });
      await this.#askForTrust(error);
      // The agent soon retries an enrollment with an expired token, because the hub extends the token while the onboarding waits. After a refusal for
      // a reason other than an expired token or a fault of the hub, the agent rarely retries the enrollment.
      if (code === "token_expired" || code === "unavailable" || code === "internal_error") await this.#pause(5_000);
      else if (code !== null) await this.#pauseLong();
      return null;
    }
  }

  /**
   * After the hub has refused the agent's certificate, the agent chooses another identity. An enrollment token on the host comes from an operator, so
   * after a refused certificate the agent enrolls with the token. Without an enrollment token, the agent tries to renew its certificate, because
   * perhaps only the host's clock is wrong.
   */
  async #afterRefusal(identity: Identity): Promise<Identity | null> {
    const { identities, log } = this.#parts;
    try {
      return (await identities.hasToken()) ? await identities.enroll() : await identities.renew(identity);
    } catch (error) {
      log.warn("the identity could not be made good", { error });
      await this.#askForTrust(error);
      if (error instanceof HubRefusal && error.code === NODE_DELETED && (await this.#runner?.nodeDeleted()))
        return null;
      if (error instanceof HubRefusal) await this.#pauseLong();
      return null;
    }
  }

  /**
   * If the hub shows a CA that the host does not trust, for example after a CA rotation, `#askForTrust` asks the hub for its chain of signed
   * statements about its CAs (decision I6).
   */
  async #askForTrust(error: unknown): Promise<void> {
    if (!isOtherCa(error)) return;
    const { trust, log } = this.#parts;
    try {
      if (await trust.askAnew()) log.info("the hub has another CA, by its old key's word");
    } catch (failure) {
      log.warn("the hub's own word on its CA could not be had", { error: failure });
    }
  }

  async #open(identity: Identity): Promise<Channel> {
    const { config, journal, system, log } = this.#parts;
    const hello = {
      type: "hello" as const,
      protocol_version: PROTOCOL_VERSION,
      agent_version: VERSION,
      node_id: identity.nodeId,
      generation: identity.generation,
      boot_id: await system.bootId(),
      journal: journal.digest(DIGEST_LIMIT),
    };
    const options = { hubUrl: config.hubUrl, identity, hello, log, take: (frame: HubFrame) => this.#take(frame) };
    const kind = this.#transports.next();
    try {
      const channel = await (kind === "long_poll" ? openLongPoll(options) : openSocket(options));
      this.#transports.opened(kind);
      return channel;
    } catch (error) {
      // A refusal by the hub proves that the transport (WebSocket or long poll) reaches the hub.
      if (!(error instanceof ChannelRefused)) this.#transports.failed(kind);
      throw error;
    }
  }

  async #serve(channel: Channel): Promise<ChannelEnd> {
    const { log } = this.#parts;
    this.#ttlMs = channel.welcome.heartbeat_ttl_ms;
    this.#welcomed = { hubMs: new Date(channel.welcome.hub_time).getTime(), at: performance.now() };
    this.#lastSignal = null;
    const over = new AbortController();
    const background = (what: string, work: Promise<void>): void => {
      work.catch((error: unknown) => !over.signal.aborted && log.warn("background work failed", { what, error }));
    };
    background("heartbeat", this.#beat(channel, over.signal));
    background("readiness", this.#report(over.signal));
    background("renewal", this.#renew(channel, over.signal));
    background("inventory", this.#tellInventory(over.signal));
    this.#runner?.resend();
    const end = await channel.ended;
    over.abort();
    return end;
  }

  async #tellInventory(over: AbortSignal): Promise<void> {
    const { health, system } = this.#parts;
    try {
      await health.beforeInventory();
      const inventory = await system.inventory();
      health.afterInventory(inventory);
      if (!over.aborted) this.send({ type: "inventory", inventory });
    } catch (error) {
      health.inventoryFailed();
      throw error;
    }
  }

  async #beat(channel: Channel, over: AbortSignal): Promise<void> {
    for (let seq = 1; !over.aborted; seq += 1) {
      await sleep(heartbeatPauseMs(this.#ttlMs, Math.random()), undefined, { signal: over });
      channel.send({ type: "heartbeat", seq });
      this.#runner?.resend();
      if (this.#signalPending && this.#lastSignal !== null) this.send({ type: "readiness", signal: this.#lastSignal });
    }
  }

  async #report(over: AbortSignal): Promise<void> {
    const { system, journal } = this.#parts;
    let saidAt = 0;
    while (!over.aborted && this.#identity !== null) {
      const facts = {
        identity: this.#identity,
        journalFault: journal.fault,
        skewMs: this.skewMs(),
        health: this.#parts.health.conditions(),
      };
      const signal = await readinessSignal(system, facts);
      const due = performance.now() - saidAt >= READINESS_EVERY_MS;
      if (this.#lastSignal === null || due || !saysTheSame(signal, this.#lastSignal)) {
        this.#lastSignal = signal;
        this.#signalPending = true;
        saidAt = performance.now();
        this.send({ type: "readiness", signal });
      }
      const settling = signal.conditions.some((one) => one.type.startsWith("bootstrap.") && one.status !== "True");
      await sleep(settling ? SETTLING_EVERY_MS : HEALTH_EVERY_MS, undefined, { signal: over });
    }
  }

  /** Renews the agent's certificate and closes the connection, so that the next connection uses the new certificate (decision I1). */
  async #renew(channel: Channel, over: AbortSignal): Promise<void> {
    const identity = this.#identity;
    if (identity === null) return;
    const due = renewAt(identity.notBefore, identity.notAfter, Math.random()).getTime();
    // The hub sets the dates of the agent's certificate, so the agent uses the hub's time to compute when a renewal is due. By the host's own clock,
    // which may be wrong, the renewal of the agent's certificate might be due at once or never.
    const remaining = (): number => Math.max(due - this.now().getTime(), this.#renewNextAt - performance.now());
    for (let ms = remaining(); ms > 0; ms = remaining())
      await sleep(Math.max(1_000, Math.min(RENEW_CHECK_MS, ms)), undefined, { signal: over });
    while (!over.aborted) {
      try {
        this.#identity = await this.#parts.identities.renew(identity);
        this.#renewNextAt = performance.now() + RENEW_CHECK_MS;
        channel.close("renewed");
        return;
      } catch (error) {
        const not_after = identity.notAfter.toISOString();
        this.#parts.log.warn("the certificate could not be renewed", { error, not_after });
      }
      await sleep(RENEW_CHECK_MS * (1 + Math.random()), undefined, { signal: over });
    }
  }

  #take(frame: HubFrame): void {
    const runner = this.#runner;
    const failed = (error: unknown): void =>
      this.#parts.log.error("a frame of the hub could not be acted on", { type: frame.type, error });
    switch (frame.type) {
      case "heartbeat.ack":
        this.#ttlMs = frame.heartbeat_ttl_ms;
        return;
      case "readiness.ack":
        if (this.#lastSignal?.signal_id === frame.signal_id) this.#signalPending = false;
        return;
      case "task.offer":
        // The hub may have signed an order with a signing key that it has just announced, so the agent handles the announcement first.
        this.#trusting.then(() => runner?.offer(frame.order)).catch(failed);
        return;
      case "trust.update":
        this.#trusting = this.#parts.trust
          .take(frame.statements)
          .then((sequence) => this.send({ type: "trust.known", sequence }))
          .catch(failed);
        return;
      case "task.result_ack":
        runner?.acknowledged(frame.task_id, frame.epoch, frame.accepted).catch(failed);
        return;
      case "task.cancel":
        runner?.cancel(frame.task_id, frame.epoch).catch(failed);
        return;
      case "welcome":
        return;
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  async #pauseLong(): Promise<void> {
    await this.#pause(REFUSED_PAUSE_MS * (0.75 + 0.5 * Math.random()));
  }
}
