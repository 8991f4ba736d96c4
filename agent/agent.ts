import { setTimeout as sleep } from "node:timers/promises";
import type { HubFrame } from "../shared/protocol/frames.ts";
import { PROTOCOL_VERSION } from "../shared/protocol/version.ts";
import type { ReadinessSignal } from "../shared/readiness.ts";
import { attemptPlan, heartbeatPauseMs, renewAt } from "./backoff.ts";
import { type Channel, type ChannelEnd, ChannelRefused } from "./channel.ts";
import type { Config } from "./config.ts";
import { HubRefusal } from "./https.ts";
import type { Identity, IdentityStore } from "./identity.ts";
import type { Journal } from "./journal.ts";
import type { Log } from "./log.ts";
import { openLongPoll } from "./long-poll.ts";
import { readinessSignal } from "./readiness.ts";
import type { Runner } from "./runner.ts";
import { openSocket } from "./socket.ts";
import type { System } from "./system/system.ts";
import { AGENT_VERSION } from "./version.ts";

export interface AgentParts {
  readonly config: Config;
  readonly system: System;
  readonly identities: IdentityStore;
  readonly journal: Journal;
  readonly log: Log;
}

const SOCKET_FAILURES_BEFORE_POLL = 3;
const READINESS_EVERY_MS = 5 * 60_000;
const RENEW_CHECK_MS = 60_000;
/** A refused identity is looked at again this often: an operator may have lifted the reason. */
const REFUSED_PAUSE_MS = 60_000;

/** Keeps the host enrolled and connected for as long as it runs. No network reason ever ends it. */
export class Agent {
  readonly #parts: AgentParts;
  readonly #stop = new AbortController();
  #runner: Runner | null = null;
  #channel: Channel | null = null;
  /** Kept until the hub has acknowledged it. */
  #signal: ReadinessSignal | null = null;
  #ttlMs = 10_000;

  constructor(parts: AgentParts) {
    this.#parts = parts;
  }

  /** The runner sends through whatever channel is open. */
  use(runner: Runner): void {
    this.#runner = runner;
  }

  send = (frame: Parameters<Channel["send"]>[0]): void => this.#channel?.send(frame);

  stop(): void {
    this.#stop.abort();
    this.#runner?.stop();
    this.#channel?.close();
  }

  async run(): Promise<void> {
    await this.#runner?.recover();
    let failures = 0;
    while (!this.#stop.signal.aborted) {
      const { beforeMs, afterMs } = attemptPlan(failures, Math.random());
      // The very first attempt of a boot is made at once; hosts do not boot in step.
      if (failures > 0 || this.#channel !== null) await this.#pause(beforeMs);
      const welcomed = await this.#attempt(failures);
      if (welcomed) failures = 0;
      else {
        failures += 1;
        await this.#pause(afterMs);
      }
    }
  }

  /** One life of a connection: enroll if needed, connect, serve until it ends. True when there was a welcome. */
  async #attempt(failures: number): Promise<boolean> {
    const { log } = this.#parts;
    let welcomed = false;
    try {
      const identity = await this.#identity();
      if (identity === null) return false;
      const channel = await this.#open(identity, failures);
      this.#channel = channel;
      welcomed = true;
      log.info("connected", {
        channel: channel.kind,
        session_epoch: channel.welcome.session_epoch,
        heartbeat_ttl_ms: channel.welcome.heartbeat_ttl_ms,
      });
      const end = await this.#serve(channel, identity);
      log.info("disconnected", { reason: end.reason, detail: end.message });
      if (end.reason === "superseded") await this.#pause(REFUSED_PAUSE_MS / 2);
      if (end.reason === "identity_revoked" || end.reason === "protocol_unsupported")
        await this.#pause(REFUSED_PAUSE_MS);
    } catch (error) {
      log.warn("no connection to the hub", { error, attempt: failures + 1 });
      if (error instanceof ChannelRefused) await this.#pause(REFUSED_PAUSE_MS / 4);
    }
    return welcomed;
  }

  async #identity(): Promise<Identity | null> {
    const { identities, log } = this.#parts;
    const stored = await identities.read();
    if (stored !== null) return stored.notAfter.getTime() <= Date.now() ? identities.renew(stored) : stored;
    try {
      return await identities.enroll();
    } catch (error) {
      const code = error instanceof HubRefusal ? error.code : null;
      log.warn("enrollment was refused or did not get through", { code, error });
      // The hub renews an expired token while the onboarding waits; the others need a person, so asking slowly is enough.
      if (code !== null)
        await this.#pause(
          code === "token_expired" || code === "unavailable" || code === "internal_error" ? 5_000 : REFUSED_PAUSE_MS,
        );
      return null;
    }
  }

  async #open(identity: Identity, failures: number): Promise<Channel> {
    const { config, journal, system, log } = this.#parts;
    const hello = {
      type: "hello" as const,
      protocol_version: PROTOCOL_VERSION,
      agent_version: AGENT_VERSION,
      node_id: identity.nodeId,
      generation: identity.generation,
      boot_id: await system.bootId(),
      journal: journal.entries
        .slice(-1000)
        .map((entry) => ({ task_id: entry.task_id, epoch: entry.epoch, state: entry.state })),
    };
    const options = { hubUrl: config.hubUrl, identity, hello, log, take: (frame: HubFrame) => this.#take(frame) };
    return failures > 0 && failures % SOCKET_FAILURES_BEFORE_POLL === 0 ? openLongPoll(options) : openSocket(options);
  }

  /** Everything that goes on while a channel is open; its timers end with it. */
  async #serve(channel: Channel, identity: Identity): Promise<ChannelEnd> {
    const { log, system } = this.#parts;
    this.#ttlMs = channel.welcome.heartbeat_ttl_ms;
    const over = new AbortController();
    const background = (what: string, work: Promise<void>): void => {
      work.catch((error: unknown) => !over.signal.aborted && log.warn("background work failed", { what, error }));
    };
    background("heartbeat", this.#beat(channel, over.signal));
    background("readiness", this.#report(channel, identity, over.signal));
    background("renewal", this.#renew(identity, over.signal));
    background(
      "inventory",
      system.inventory().then((inventory) => channel.send({ type: "inventory", inventory })),
    );
    this.#runner?.resend();
    const end = await channel.ended;
    over.abort();
    return end;
  }

  async #beat(channel: Channel, over: AbortSignal): Promise<void> {
    for (let seq = 1; !over.aborted; seq += 1) {
      await sleep(heartbeatPauseMs(this.#ttlMs, Math.random()), undefined, { signal: over });
      channel.send({ type: "heartbeat", seq });
      this.#runner?.resend();
      if (this.#signal !== null) channel.send({ type: "readiness", signal: this.#signal });
    }
  }

  async #report(channel: Channel, identity: Identity, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      this.#signal = await readinessSignal(this.#parts.system, identity);
      channel.send({ type: "readiness", signal: this.#signal });
      await sleep(READINESS_EVERY_MS, undefined, { signal: over });
    }
  }

  /** The new certificate is used by the next connection; the open one stays valid. */
  async #renew(identity: Identity, over: AbortSignal): Promise<void> {
    const due = renewAt(identity.notBefore, identity.notAfter, Math.random());
    while (!over.aborted) {
      await sleep(Math.max(1_000, Math.min(RENEW_CHECK_MS, due.getTime() - Date.now())), undefined, { signal: over });
      if (Date.now() < due.getTime()) continue;
      try {
        await this.#parts.identities.renew(identity);
        return;
      } catch (error) {
        this.#parts.log.warn("the certificate could not be renewed", {
          error,
          not_after: identity.notAfter.toISOString(),
        });
        await sleep(RENEW_CHECK_MS * (1 + Math.random()), undefined, { signal: over });
      }
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
        if (this.#signal?.signal_id === frame.signal_id) this.#signal = null;
        return;
      case "task.offer":
        runner?.offer(frame.order).catch(failed);
        return;
      case "task.result_ack":
        runner?.acknowledged(frame.task_id, frame.epoch).catch(failed);
        return;
      case "task.cancel":
        runner?.cancel(frame.task_id, frame.epoch);
        return;
      case "welcome":
        return;
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }
}
