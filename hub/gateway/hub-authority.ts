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
import { SECRET_PATHS, SecretError, type SecretStore } from "../secrets/port.ts";
import { authorityOf, type CertificateAuthority, openCertificateAuthority } from "./certificate-authority.ts";
import { openTaskSigner, type TaskSigner } from "./task-signer.ts";

/**
 * The delay in milliseconds before a hub tells agents that a new generation of the hub's keys is valid; all hubs know the new keys earlier. Each hub
 * reads the database's chain of signed statements about the hub's keys every second. When the first agent drops an old key of the hub, no hub signs
 * with the old key any more.
 */
const SETTLE_MS = 30_000;
/**
 * The time after which a hub signs no task any more if it could not read the chain of statements about its keys. A task without a signature waits,
 * while a task with an outdated signature would fail for good.
 */
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
  /** The CAs of every key generation, including past generations, because a host that was off has a certificate of an older CA. */
  readonly issuers: readonly ((certificate: X509Certificate) => boolean)[];
}

/**
 * The CA and the task-signing key that are valid now. After a rotation of the hub's keys, the objects `ca` and `signer` stay in use and use the new
 * keys. `refresh` checks whether any hub has performed a rotation of the hub's keys.
 */
export class HubAuthority {
  readonly #db: Db;
  readonly #secrets: SecretStore;
  readonly #settleMs: number;
  readonly #first: Pair;
  #now: InForce;
  /**
   * The time when the hub last began to read the statements about its keys. The hub may lack statements about the hub's keys that another hub has
   * added since the time `#askedAt`.
   */
  #askedAt: number;
  /**
   * The time when the hub last finished reading the statements about its keys. The database computed the age of each key statement at the time
   * `#answeredAt` or earlier.
   */
  #answeredAt = performance.now();

  private constructor(
    { db, secrets, settleMs = SETTLE_MS }: AuthorityOptions,
    first: Pair,
    now: InForce,
    askedAt: number,
  ) {
    this.#db = db;
    this.#secrets = secrets;
    this.#settleMs = settleMs;
    this.#first = first;
    this.#now = now;
    this.#askedAt = askedAt;
  }

  /** Opens the keys that are valid now; the first hub that starts creates the first generation of keys. */
  static async open(options: AuthorityOptions): Promise<HubAuthority> {
    const { db, secrets } = options;
    const askedAt = performance.now();
    const chain = await readStatements(db);
    const missing = chain.length === 0 ? "make" : "refuse";
    const first = {
      ca: await openCertificateAuthority(secrets, 1, missing),
      signer: await openTaskSigner(secrets, 1, missing),
    };
    return new HubAuthority(options, first, await load(secrets, first, chain), askedAt);
  }

  get generation(): number {
    return this.#now.generation;
  }
  get trust(): Trust {
    return this.#now.trust;
  }

  /**
   * The statements about the hub's keys that agents may know. `chain` leaves out a statement that finishes a rotation of the hub's keys until the
   * statement has been valid for `SETTLE_MS`.
   */
  get chain(): readonly TrustStatement[] {
    const since = performance.now() - this.#answeredAt;
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
    const fresh = (): TaskSigner => {
      if (performance.now() - this.#askedAt > STALE_MS)
        throw new Error("this hub could not read for a while which order key is valid; it signs nothing until it can");
      return now().signer;
    };
    return {
      get publicKey() {
        return now().signer.publicKey;
      },
      sign: (order) => fresh().sign(order),
      signStatement: (statement) => now().signer.signStatement(statement),
      countersign: (facts) => fresh().countersign(facts),
    } satisfies TaskSigner;
  })();

  /**
   * Reads from the database the signed statements by which each key of the hub names its successor. Returns true if the database has statements about
   * the hub's keys that the hub had not read before.
   */
  async refresh(): Promise<boolean> {
    const askedAt = performance.now();
    const chain = await readStatements(this.#db);
    const answeredAt = performance.now();
    const grown = chain.length !== this.#now.chain.length;
    const now = grown ? await load(this.#secrets, this.#first, chain) : { ...this.#now, chain };
    // If another read of the key statements began later and has already ended, its result is newer, and `refresh` drops the older result.
    if (askedAt < this.#askedAt) return false;
    this.#now = now;
    this.#askedAt = askedAt;
    this.#answeredAt = answeredAt;
    return grown;
  }

  /**
   * The first hub that calls `prepareNext` creates the keys of the next generation. If the start of a key rotation was interrupted, the next start of
   * the rotation uses the keys that the interrupted start created.
   */
  async prepareNext(): Promise<NextKeys> {
    await this.refresh();
    const { chain } = this.#now;
    const generation = 1 + Math.max(1, ...chain.map(({ statement }) => statement.generation));
    const ca = await openCertificateAuthority(this.#secrets, generation);
    const signer = await openTaskSigner(this.#secrets, generation);
    return { sequence: chain.length, keys: { generation, ca_pem: ca.caPem, order_key: signer.publicKey } };
  }

  /** Returns the announced keys of the hub's next key generation; the field `keys` of the result is null if no keys are announced. */
  async lookAtNext(): Promise<NextKeys> {
    await this.refresh();
    const { chain, trust } = this.#now;
    return { sequence: chain.length, keys: trust.next };
  }

  /**
   * Returns the hub's announced keys, which are about to become valid. The announced keys must be in the secret store, because otherwise no hub could
   * sign after the rotation.
   */
  async haveNext(): Promise<NextKeys> {
    const next = await this.lookAtNext();
    if (next.keys !== null) await openNamed(this.#secrets, next.keys);
    return next;
  }

  /**
   * Adds a signed statement about the hub's next keys to the chain of key statements, in the transaction `tx`. The new key statement names the keys
   * that the caller of `state` has read before. If the hub's keys have changed since the caller of `state` read them, `state` throws an error instead
   * of adding the statement.
   */
  async state(tx: Tx, kind: TrustKind, { sequence, keys }: NextKeys): Promise<TrustStatement> {
    const kept = await lockStatements(tx);
    if (kept.length !== sequence)
      throw new ApiError(
        "conflict",
        "The hub's keys have changed since you read them. Read them again (get-authority).",
      );
    const { next } = this.#now.trust;
    if (kind === "announce" && next !== null)
      throw new ApiError(
        "conflict",
        `Generation ${next.generation} is already announced. Finish or abort its rotation first.`,
      );
    if (keys === null) throw new ApiError("conflict", "No rotation is under way. Start one first.");
    // When a key rotation begins, the chain of key statements must have room for two more statements: the announcement and the final statement.
    if (kept.length >= (kind === "announce" ? MOST_STATEMENTS - 1 : MOST_STATEMENTS))
      throw new ApiError(
        "conflict",
        "The chain of statements has reached its largest size, so hosts cannot learn of further rotations.",
      );
    const statement = this.signer.signStatement({ sequence: kept.length + 1, kind, ...keys });
    await addStatement(tx, statement);
    return statement;
  }
}

export interface AuthorityOptions {
  readonly db: Db;
  readonly secrets: SecretStore;
  readonly settleMs?: number;
}
/** The keys that the next key statement will name, and the number of key statements at the time when the hub read these keys. */
export interface NextKeys {
  readonly sequence: number;
  /** The next keys of the hub; null if no keys are announced. */
  readonly keys: Keys | null;
}
type Keys = NonNullable<Trust["next"]>;
type Pair = Pick<InForce, "ca" | "signer">;

async function load(secrets: SecretStore, first: Pair, chain: readonly KeptStatement[]): Promise<InForce> {
  const statements = chain.map(({ statement }) => statement);
  const genesis = { sequence: 0, current: { ca_pem: first.ca.caPem, order_key: first.signer.publicKey }, next: null };
  const { trust, fault } = followTrust(genesis, statements, isSigned);
  if (fault !== null) throw new Error(`The chain of the hub's keys in the database is broken: ${fault}.`);
  const finishes = statements.filter((one) => one.kind === "finish");
  const newest = finishes.at(-1);
  return {
    generation: newest?.generation ?? 1,
    trust,
    chain,
    ...(newest === undefined ? first : await openNamed(secrets, newest)),
    issuers: [first.ca.caPem, ...finishes.map((one) => one.ca_pem)].map(authorityOf),
  };
}

/**
 * `openNamed` throws if the secret store lacks the keys that the key statement names. After a restore of an older copy of the secret store, the
 * secret store may hold other keys than those that the hub has announced. Hosts would refuse keys that the hub has not announced to them.
 */
async function openNamed(secrets: SecretStore, { generation, ca_pem, order_key }: Keys): Promise<Pair> {
  const ca = await openCertificateAuthority(secrets, generation, "refuse");
  const signer = await openTaskSigner(secrets, generation, "refuse");
  if (ca.caPem === ca_pem && signer.publicKey === order_key) return { ca, signer };
  throw new SecretError(
    "secret_corrupt",
    SECRET_PATHS.laterCertificateAuthority(generation),
    `The hub's CA and order key of generation ${generation} differ from those that were announced to hosts. Restore the secret store from a backup that has them`,
  );
}
