import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { relative } from "node:path";
import { z } from "zod";
import { EnrollResponse } from "../shared/api/enroll.ts";
import { NodeId } from "../shared/ids.ts";
import { PROTOCOL_VERSION } from "../shared/protocol/version.ts";
import { VERSION } from "../shared/version.ts";
import { makeKey, makeRequest } from "./certificate-request.ts";
import type { Config } from "./config.ts";
import { askHub, type TlsIdentity } from "./https.ts";
import type { Log } from "./log.ts";
import type { System } from "./system/system.ts";
import type { TrustStore } from "./trust.ts";

/**
 * The part of the bootstrap that installs the agent also reads `identity.json`, and keeps the agent's files if `identity.json` contains the node and
 * generation of this bootstrap.
 */
const IdentityFile = z.object({
  node_id: NodeId,
  generation: z.int().min(0),
  not_after: z.iso.datetime({ offset: true }),
});

/** The file with the key of a certificate renewal that the agent has requested or is about to request. */
const NEXT_KEY = "key-next.pem";

export interface Identity {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly tls: Required<TlsIdentity>;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export class IdentityStore {
  readonly #config: Config;
  readonly #system: System;
  readonly #log: Log;
  readonly #trust: TrustStore;
  constructor(config: Config, system: System, trust: TrustStore, log: Log) {
    this.#trust = trust;
    this.#config = config;
    this.#system = system;
    this.#log = log;
  }

  #path(name: string): string {
    return `/${relative(this.#config.root, this.#config.stateDir)}/${name}`;
  }

  /**
   * Reads the stored identity for the node and generation in the agent's configuration, or returns null. A host without a stored identity has to
   * enroll.
   */
  async read(): Promise<Identity | null> {
    const [identity, key, next, cert, ca] = await Promise.all([
      this.#system.read(this.#path("identity.json")),
      this.#system.read(this.#path("key.pem")),
      this.#system.read(this.#path(NEXT_KEY)),
      this.#system.read(this.#path("certificate.pem")),
      this.#trust.caBundle(),
    ]);
    if (identity === null || cert === null) return null;
    const parsed = IdentityFile.safeParse(parseJson(identity));
    const certificate = parseCertificate(cert);
    // An interrupted certificate renewal may have stored the new certificate but not yet replaced the old key.
    const own = [key, next].find((one) => isKeyOf(one, certificate)) ?? null;
    if (
      !parsed.success ||
      parsed.data.node_id !== this.#config.nodeId ||
      parsed.data.generation !== this.#config.generation ||
      own === null ||
      certificate === null
    )
      return null;
    return {
      nodeId: parsed.data.node_id,
      generation: parsed.data.generation,
      tls: { ca, cert, key: own },
      notBefore: certificate.validFromDate,
      notAfter: certificate.validToDate,
    };
  }

  async hasToken(): Promise<boolean> {
    const token = await this.#system.read(`/${relative(this.#config.root, this.#config.tokenFile)}`);
    return token !== null && token.trim() !== "";
  }

  /**
   * Exchanges the one-time enrollment token for a certificate. The agent writes its key to disk before the enrollment request, so that it can repeat
   * a request whose answer was lost.
   */
  async enroll(): Promise<Identity> {
    const tokenPath = `/${relative(this.#config.root, this.#config.tokenFile)}`;
    const token = (await this.#system.read(tokenPath))?.trim();
    if (token === undefined || token === "")
      throw new Error(
        "There is no enrollment token on this host and no identity for this generation. Deploy the host again, or run a new bootstrap command.",
      );
    const keyPath = this.#path(`key-${this.#config.generation}.pem`);
    const begun = await this.#system.read(keyPath);
    const key = begun !== null && parseKey(begun) !== null ? begun : makeKey();
    await this.#system.write(keyPath, key, 0o600);
    const answer = await askHub(
      this.#config.hubUrl,
      { ca: await this.#trust.caBundle() },
      {
        method: "POST",
        path: "/internal/v1/nodes/enroll",
        body: {
          protocol_version: PROTOCOL_VERSION,
          node_id: this.#config.nodeId,
          token,
          csr_pem: makeRequest(key, this.#config.nodeId),
          hostname: await this.#system.hostname(),
          boot_id: await this.#system.bootId(),
          agent_version: VERSION,
          macs: await this.#system.macs(),
        },
      },
      EnrollResponse,
    );
    await this.#keep(answer, key);
    await this.#system.remove(tokenPath);
    await this.#system.remove(keyPath);
    this.#log.info("enrolled", { node_id: answer.node_id, generation: answer.generation, not_after: answer.not_after });
    return this.#mustRead();
  }

  /**
   * Gets a new certificate for a new key from the hub. From the first use of the new certificate on, a copy of the agent's old key is worthless. The
   * agent writes a new key to disk before the renewal request, because the hub repeats a lost answer only for the same key. If the agent repeated a
   * renewal request with another key, the hub would assume a second host with the same identity.
   */
  async renew(identity: Identity): Promise<Identity> {
    const begun = await this.#system.read(this.#path(NEXT_KEY));
    // An interrupted renewal stored the certificate but not the key, so only `key-next.pem` contains the key in use.
    if (begun === identity.tls.key) await this.#system.write(this.#path("key.pem"), begun, 0o600);
    const key = begun !== null && begun !== identity.tls.key && parseKey(begun) !== null ? begun : makeKey();
    await this.#system.write(this.#path(NEXT_KEY), key, 0o600);
    const answer = await askHub(
      this.#config.hubUrl,
      // The hub may have changed to another CA since the agent read its identity.
      { ...identity.tls, ca: await this.#trust.caBundle() },
      {
        method: "POST",
        path: `/internal/v1/nodes/${identity.nodeId}/certificate?generation=${identity.generation}`,
        body: { csr_pem: makeRequest(key, identity.nodeId) },
      },
      EnrollResponse,
    );
    await this.#keep(answer, key);
    await this.#system.remove(this.#path(NEXT_KEY));
    this.#log.info("certificate renewed", { not_after: answer.not_after });
    return this.#mustRead();
  }

  /**
   * After an enrollment the agent writes `identity.json` last, which marks the other files as complete. After a renewal the new certificate takes
   * effect as soon as it is on disk, because the key is already there.
   */
  async #keep(answer: EnrollResponse, key: string): Promise<void> {
    if (answer.node_id !== this.#config.nodeId || answer.generation !== this.#config.generation)
      throw new Error(
        `The hub enrolled this host as another node or generation (${answer.node_id}, ${answer.generation}). Run a new bootstrap command.`,
      );
    await this.#system.write(this.#path("certificate.pem"), answer.certificate_pem, 0o644);
    await this.#system.write(this.#path("key.pem"), key, 0o600);
    await this.#system.write(
      this.#path("identity.json"),
      `${JSON.stringify({ node_id: answer.node_id, generation: answer.generation, not_after: answer.not_after })}\n`,
      0o644,
    );
  }

  async #mustRead(): Promise<Identity> {
    const identity = await this.read();
    if (identity === null) throw new Error("The identity that was just written cannot be read.");
    return identity;
  }
}

const isKeyOf = (pem: string | null, certificate: X509Certificate | null): pem is string => {
  const key = pem === null ? null : parseKey(pem);
  return key !== null && certificate?.checkPrivateKey(key) === true;
};

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A damaged identity file counts as no identity, so the host enrolls again.
    return null;
  }
}

function parseCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem);
  } catch {
    // A damaged certificate file counts as no certificate.
    return null;
  }
}

function parseKey(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    // A damaged key file counts as no key.
    return null;
  }
}
