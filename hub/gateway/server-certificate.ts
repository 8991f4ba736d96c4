import type { SecureContextOptions } from "node:tls";
import type { CertificateAuthority } from "./certificate-authority.ts";

const DAY_MS = 24 * 3_600_000;
/**
 * The hub renews its server certificate when a third of the certificate's life is left. The hub begins the renewal 10 days before the server
 * certificate expires, so the secret store may be unavailable for days without harm.
 */
const RENEW_BEFORE_MS = 10 * DAY_MS;

/**
 * The certificate of the agent listener, which the hub renews while its process runs. Open connections keep the old certificate, and new connections
 * get the renewed certificate.
 */
export class ServerCertificate {
  readonly #ca: CertificateAuthority;
  readonly #names: readonly string[];
  #context: SecureContextOptions;
  #notAfter: Date;
  #issuerPem: string;

  private constructor(ca: CertificateAuthority, names: readonly string[], first: Issued) {
    this.#ca = ca;
    this.#names = names;
    this.#context = first.context;
    this.#notAfter = first.notAfter;
    this.#issuerPem = first.issuerPem;
  }

  static async issue(ca: CertificateAuthority, names: readonly string[]): Promise<ServerCertificate> {
    return new ServerCertificate(ca, names, await newContext(ca, names));
  }

  get context(): SecureContextOptions {
    return this.#context;
  }

  /** Replaces the server certificate if it is due for renewal or the hub's CA has changed; returns true after a replacement. */
  async renewWhenDue(server: { setSecureContext(context: SecureContextOptions): void }, now: Date): Promise<boolean> {
    const isYoung = this.#notAfter.getTime() - now.getTime() > RENEW_BEFORE_MS;
    if (isYoung && this.#issuerPem === this.#ca.issuerPem) return false;
    const next = await newContext(this.#ca, this.#names);
    this.#context = next.context;
    this.#notAfter = next.notAfter;
    this.#issuerPem = next.issuerPem;
    server.setSecureContext(next.context);
    return true;
  }
}

interface Issued {
  readonly context: SecureContextOptions;
  readonly notAfter: Date;
  readonly issuerPem: string;
}

async function newContext(ca: CertificateAuthority, names: readonly string[]): Promise<Issued> {
  // The hub reads its issuing CA before it renews the server certificate, so that the next check finds a change of the CA during the renewal.
  const { issuerPem } = ca;
  const issued = await ca.issueServer(names);
  return {
    notAfter: issued.notAfter,
    issuerPem,
    context: {
      cert: `${issued.certificatePem}\n${issuerPem}\n`,
      key: issued.privateKeyPem.reveal(),
      ca: issuerPem,
      minVersion: "TLSv1.2",
    },
  };
}
