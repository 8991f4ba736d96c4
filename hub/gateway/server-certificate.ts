import type { SecureContextOptions } from "node:tls";
import type { CertificateAuthority } from "./certificate-authority.ts";

const DAY_MS = 24 * 3_600_000;
/** A third of its life: a hub whose secret store is away for days still renews in time. */
const RENEW_BEFORE_MS = 10 * DAY_MS;

/** The listener's own certificate, renewed while the process runs: open connections stay, new ones see the new one. */
export class ServerCertificate {
  readonly #ca: CertificateAuthority;
  readonly #names: readonly string[];
  #context: SecureContextOptions;
  #notAfter: Date;

  private constructor(
    ca: CertificateAuthority,
    names: readonly string[],
    first: { context: SecureContextOptions; notAfter: Date },
  ) {
    this.#ca = ca;
    this.#names = names;
    this.#context = first.context;
    this.#notAfter = first.notAfter;
  }

  static async issue(ca: CertificateAuthority, names: readonly string[]): Promise<ServerCertificate> {
    return new ServerCertificate(ca, names, await newContext(ca, names));
  }

  get context(): SecureContextOptions {
    return this.#context;
  }

  /** True when it was due and has been replaced. */
  async renewWhenDue(server: { setSecureContext(context: SecureContextOptions): void }, now: Date): Promise<boolean> {
    if (this.#notAfter.getTime() - now.getTime() > RENEW_BEFORE_MS) return false;
    const next = await newContext(this.#ca, this.#names);
    this.#context = next.context;
    this.#notAfter = next.notAfter;
    server.setSecureContext(next.context);
    return true;
  }
}

async function newContext(
  ca: CertificateAuthority,
  names: readonly string[],
): Promise<{ context: SecureContextOptions; notAfter: Date }> {
  const issued = await ca.issueServer(names);
  return {
    notAfter: issued.notAfter,
    context: {
      cert: `${issued.certificatePem}\n${ca.caPem}\n`,
      key: issued.privateKeyPem.reveal(),
      ca: ca.caPem,
      minVersion: "TLSv1.2",
    },
  };
}
