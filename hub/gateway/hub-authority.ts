import { createPublicKey, verify, type X509Certificate } from "node:crypto";
import { ApiError } from "../../shared/api/errors.ts";
import { followTrust, MOST_STATEMENTS, type Trust, type TrustKind, type TrustStatement } from "../../shared/trust.ts";
import {
  addStatement,
  type KeptStatement,
  lockStatements,
  readStatements,
} from "../db/queries/authority-statements.ts";
import type { Db, Tx } from "../db/tx.ts";
import type { SecretStore } from "../secrets/port.ts";
import { authorityOf, type CertificateAuthority, openCertificateAuthority } from "./certificate-authority.ts";
import { openTaskSigner, type TaskSigner } from "./task-signer.ts";

/**
 * Agents hear that a generation is in force this much later than the hubs: each hub looks every second, so none signs by the old key any more when the
 * first agent has forgotten it.
 */
const SETTLE_MS = 30_000;
/** A hub that has not seen for so long which key is in force signs nothing: a task waits rather than be refused for good. */
const STALE_MS = 15_000;

const isSigned = (key: string, text: string, signature: string): boolean =>
  verify(
    null,
    Buffer.from(text),
    createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: key }, format: "jwk" }),
    Buffer.from(signature, "base64url"),
  );

interface InForce {
  readonly generation: number;
  readonly trust: Trust;
  readonly chain: readonly KeptStatement[];
  readonly ca: CertificateAuthority;
  readonly signer: TaskSigner;
  /** Of every generation, those of the past too: a host that was off has a certificate of one. */
  readonly issuers: readonly ((certificate: X509Certificate) => boolean)[];
}

/**
 * CA and order key as they are in force right now. What was given out once, `ca` and `signer`, follows a rotation by itself; `refresh` looks whether there was
 * one, on whichever hub.
 */
export class HubAuthority {
  readonly #db: Db;
  readonly #secrets: SecretStore;
  readonly #settleMs: number;
  readonly #first: { readonly ca: CertificateAuthority; readonly signer: TaskSigner };
  #now: InForce;
  #lookedAt = performance.now();

  private constructor(
    { db, secrets, settleMs = SETTLE_MS }: AuthorityOptions,
    first: { readonly ca: CertificateAuthority; readonly signer: TaskSigner },
    now: InForce,
  ) {
    this.#db = db;
    this.#secrets = secrets;
    this.#settleMs = settleMs;
    this.#first = first;
    this.#now = now;
  }

  /** The first hub makes the first generation. */
  static async open(options: AuthorityOptions): Promise<HubAuthority> {
    const { db, secrets } = options;
    const first = { ca: await openCertificateAuthority(secrets, 1), signer: await openTaskSigner(secrets, 1) };
    return new HubAuthority(options, first, await load(secrets, first, await readStatements(db)));
  }

  get generation(): number {
    return this.#now.generation;
  }
  get trust(): Trust {
    return this.#now.trust;
  }

  /** What agents are to know: a generation that came into force a moment ago is not among it yet. */
  get chain(): readonly TrustStatement[] {
    const since = performance.now() - this.#lookedAt;
    const hidden = this.#now.chain.findIndex(
      ({ statement, ageMs }) => statement.kind === "finish" && ageMs + since < this.#settleMs,
    );
    const told = hidden === -1 ? this.#now.chain : this.#now.chain.slice(0, hidden);
    return told.map(({ statement }) => statement);
  }

  readonly ca: CertificateAuthority = (() => {
    const now = (): InForce => this.#now;
    return {
      get caPem() {
        const { current, next } = now().trust;
        return [current.ca_pem.trimEnd(), ...(next === null ? [] : [next.ca_pem.trimEnd()])].join("\n");
      },
      get issuerPem() {
        return now().ca.issuerPem;
      },
      checkRequest: (...args) => now().ca.checkRequest(...args),
      signNode: (...args) => now().ca.signNode(...args),
      issueServer: (...args) => now().ca.issueServer(...args),
      issued: (certificate) => now().issuers.some((issued) => issued(certificate)),
    } satisfies CertificateAuthority;
  })();

  readonly signer: TaskSigner = (() => {
    const now = (): InForce => this.#now;
    return {
      get publicKey() {
        return now().signer.publicKey;
      },
      sign: (order) => {
        if (performance.now() - this.#lookedAt > STALE_MS)
          throw new Error(
            "this hub could not see for a while which order key is in force; nothing is signed meanwhile",
          );
        return now().signer.sign(order);
      },
      signStatement: (statement) => now().signer.signStatement(statement),
    } satisfies TaskSigner;
  })();

  /** True when the chain has grown. */
  async refresh(): Promise<boolean> {
    const chain = await readStatements(this.#db);
    const grown = chain.length !== this.#now.chain.length;
    this.#now = grown ? await load(this.#secrets, this.#first, chain) : { ...this.#now, chain };
    this.#lookedAt = performance.now();
    return grown;
  }

  /** The keys of the next generation, made by whoever asks first; a start that was cut off finds the same ones again. */
  async prepareNext(): Promise<Prepared> {
    await this.refresh();
    const generation = 1 + Math.max(1, ...this.#now.chain.map(({ statement }) => statement.generation));
    const ca = await openCertificateAuthority(this.#secrets, generation);
    const signer = await openTaskSigner(this.#secrets, generation);
    return { generation, ca_pem: ca.caPem, order_key: signer.publicKey };
  }

  /** Adds the statement in the caller's transaction, signed by the key in force. `prepared` for an announcement alone. */
  async state(tx: Tx, kind: TrustKind, prepared: Prepared | null): Promise<TrustStatement> {
    const kept = await lockStatements(tx);
    if (kept.length !== this.#now.chain.length)
      throw new ApiError("conflict", "The hub's keys were changed meanwhile. Look at them again (get-authority).");
    const { next } = this.#now.trust;
    if (kind === "announce" && next !== null)
      throw new ApiError("conflict", `Generation ${next.generation} is announced already. Finish or abort it first.`);
    const about = kind === "announce" ? prepared : next;
    if (about === null) throw new ApiError("conflict", "No rotation is under way. Start one first.");
    if (kept.length >= MOST_STATEMENTS - 1)
      throw new ApiError(
        "conflict",
        "The chain of statements is at its largest; no more rotations can be told to hosts.",
      );
    const statement = this.signer.signStatement({ sequence: kept.length + 1, kind, ...about });
    await addStatement(tx, statement);
    return statement;
  }
}

export interface AuthorityOptions {
  readonly db: Db;
  readonly secrets: SecretStore;
  readonly settleMs?: number;
}
export interface Prepared {
  readonly generation: number;
  readonly ca_pem: string;
  readonly order_key: string;
}

async function load(
  secrets: SecretStore,
  first: { readonly ca: CertificateAuthority; readonly signer: TaskSigner },
  chain: readonly KeptStatement[],
): Promise<InForce> {
  const statements = chain.map(({ statement }) => statement);
  const genesis = { sequence: 0, current: { ca_pem: first.ca.caPem, order_key: first.signer.publicKey }, next: null };
  const { trust, fault } = followTrust(genesis, statements, isSigned);
  if (fault !== null) throw new Error(`The chain of the hub's keys in the database does not hold: ${fault}.`);
  const generation = statements.findLast((one) => one.kind === "finish")?.generation ?? 1;
  const later = generation > 1;
  return {
    generation,
    trust,
    chain,
    ca: later ? await openCertificateAuthority(secrets, generation) : first.ca,
    signer: later ? await openTaskSigner(secrets, generation) : first.signer,
    issuers: [first.ca.caPem, ...statements.filter((one) => one.kind === "finish").map((one) => one.ca_pem)].map(
      authorityOf,
    ),
  };
}
