import { type KeyObject, verify, X509Certificate } from "node:crypto";
import { relative } from "node:path";
import { z } from "zod";
import {
  followTrust,
  sequenceOf,
  TRUST_PATH,
  type Trust,
  TrustChain,
  TrustedKeys,
  type VerifyText,
} from "../shared/trust.ts";
import type { Config } from "./config.ts";
import { askUnproven } from "./https.ts";
import type { Log } from "./log.ts";
import { signingKey } from "./orders.ts";
import type { System } from "./system/system.ts";

/** The agent ignores its stored trust if a later bootstrap command gave the host another order key. */
const TrustFile = z.object({
  given_key: z.string(),
  sequence: z.int().min(0),
  current: TrustedKeys,
  next: TrustedKeys.extend({ generation: z.int() }).nullable(),
});

const verifyText: VerifyText = (key, text, signature) =>
  verify(null, Buffer.from(text), signingKey(key), Buffer.from(signature, "base64url"));

/**
 * The hub's CAs and order keys that this host trusts, which are at first the keys of its bootstrap. Signed statements of the hub later change the
 * trusted keys (decision I6). The agent stores a change of the trusted keys on disk before it uses the new keys. A trust statement that is older than
 * the last accepted one never changes the trusted keys.
 */
export class TrustStore {
  readonly #config: Config;
  readonly #system: System;
  readonly #log: Log;
  readonly #givenKey: string;
  /**
   * The trusted keys by the newest trust statement of the hub that the agent has accepted; null until the agent has accepted one. Until the hub has
   * sent a signed statement about its keys, the agent trusts the keys of its bootstrap.
   */
  #trust: Trust | null = null;
  #taking: Promise<unknown> = Promise.resolve();

  constructor(config: Config, system: System, log: Log) {
    this.#config = config;
    this.#system = system;
    this.#log = log;
    this.#givenKey = signingKey(config.taskSigningPublicKey).export({ format: "jwk" }).x ?? "";
  }

  get #path(): string {
    return `/${relative(this.#config.root, this.#config.stateDir)}/trust.json`;
  }

  /** If the trust file is damaged, the agent starts with the keys of its bootstrap. */
  async load(): Promise<void> {
    const text = await this.#system.read(this.#path);
    if (text === null) return;
    try {
      const { given_key, ...trust } = TrustFile.parse(JSON.parse(text));
      if (given_key === this.#givenKey) this.#trust = trust;
    } catch (error) {
      this.#log.warn("what is kept of the hub's keys cannot be read; it is followed anew", { error });
    }
  }

  /** The certificates, in PEM, of every CA that the hub's server may use. */
  async caBundle(): Promise<string> {
    if (this.#trust !== null) return pemOf(this.#trust);
    const given = await this.#system.read(`/${relative(this.#config.root, this.#config.caFile)}`);
    if (given === null) throw new Error("The hub's CA bundle is missing. Run the bootstrap part again.");
    return given;
  }

  orderKeys(): readonly KeyObject[] {
    const keys = [this.#trust?.current.order_key ?? this.#givenKey, this.#trust?.next?.order_key];
    return keys.filter((key) => key !== undefined).map(signingKey);
  }

  /**
   * Verifies the hub's chain of trust statements, and stores the keys that the chain makes trusted. `take` returns the number of the newest trust
   * statement that the agent trusts and has stored.
   */
  take(chain: TrustChain): Promise<number> {
    const taken = this.#taking.then(() => this.#take(chain));
    this.#taking = taken.catch(() => undefined);
    return taken;
  }

  async #take(chain: TrustChain): Promise<number> {
    const before = this.#trust ?? {
      sequence: sequenceOf(chain, this.#givenKey),
      current: { ca_pem: await this.caBundle(), order_key: this.#givenKey },
      next: null,
    };
    const { trust, fault } = followTrust(before, chain.filter(holdsAuthority), verifyText);
    if (fault !== null && this.#isAheadOf(chain))
      this.#log.info("this host was given newer keys than the hub tells of yet; it follows them from there");
    else if (fault !== null)
      this.#log.error("the hub's new keys are not believed; ask an operator to re-enroll the node (re-enroll-node)", {
        fault,
      });
    if (trust.sequence > before.sequence) {
      const text = `${JSON.stringify({ given_key: this.#givenKey, ...trust })}\n`;
      await this.#system.write(this.#path, text, 0o644);
      this.#trust = trust;
      this.#log.info("the hub's keys have changed", { sequence: trust.sequence, announced: trust.next !== null });
    }
    return trust.sequence;
  }

  /**
   * A newly installed host may get the hub's new keys up to half a minute before the hub announces the end of its key rotation. Until the hub
   * announces the end of a key rotation, it signs no trust statement with its new keys.
   */
  #isAheadOf(chain: TrustChain): boolean {
    const about = chain.filter((one) => one.order_key === this.#givenKey);
    return this.#trust === null && about.length > 0 && about.every((one) => one.kind === "announce");
  }

  /**
   * Asks the hub for its chain of trust statements when the host trusts no CA of the hub, for example after a missed rotation. The agent sends no
   * data to a server that it does not trust, and only the signatures in the server's answer count. `askAnew` returns true when the host trusts
   * another CA than before.
   */
  async askAnew(): Promise<boolean> {
    const before = await this.caBundle();
    const { statements } = await askUnproven(this.#config.hubUrl, TRUST_PATH, z.object({ statements: TrustChain }));
    await this.take(statements);
    return (await this.caBundle()) !== before;
  }
}

const pemOf = ({ current, next }: Trust): string =>
  [current.ca_pem, next?.ca_pem ?? ""].map((pem) => pem.trim()).join("\n");

/** Whether a trust statement contains a CA certificate. A trust statement without a CA certificate would leave the host without a hub. */
function holdsAuthority({ ca_pem }: TrustChain[number]): boolean {
  try {
    return new X509Certificate(ca_pem).ca;
  } catch {
    // The field `ca_pem` of the trust statement contains no certificate.
    return false;
  }
}
