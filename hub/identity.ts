import type { Db } from "./db/tx.ts";
import { type CertificateAuthority, openCertificateAuthority } from "./gateway/certificate-authority.ts";
import { openTaskSigner, type TaskSigner } from "./gateway/task-signer.ts";
import type { Log } from "./log.ts";
import { ensureSameStore } from "./same-store.ts";
import { SecretError, type SecretStore } from "./secrets/port.ts";

/** What makes this hub the one that its hosts know. */
export interface HubKeys {
  readonly ca: CertificateAuthority;
  readonly signer: TaskSigner;
}

export interface HubIdentity {
  /** Throws the `SecretError` that keeps the hub from them. */
  keys(): HubKeys;
  readonly isOpen: boolean;
  /** Settled once the secret store has given them; null when the hub closes before. Rejects when the store turns out to be a wrong one. */
  readonly opened: Promise<HubKeys | null>;
  close(): void;
}

const TRY_AGAIN_MS = 3_000;

/**
 * Opens CA and order key from the secret store; the first hub makes them. A store that is away keeps no hub from its start: it is asked again until it
 * answers, and hosts and new deployments wait so long. Everything else that is wrong with it is thrown at once.
 */
export async function openIdentity(options: { db: Db; secrets: SecretStore; log: Log }): Promise<HubIdentity> {
  const { db, secrets, log } = options;
  const open = async (): Promise<HubKeys> => {
    await secrets.check();
    await ensureSameStore(db, secrets);
    return { ca: await openCertificateAuthority(secrets), signer: await openTaskSigner(secrets) };
  };
  const attempt = (): Promise<HubKeys | SecretError> =>
    open().catch((error: unknown) => {
      if (error instanceof SecretError && error.isAway) return error;
      throw error;
    });
  let known = await attempt();
  const closing = new AbortController();
  const opened = (async (): Promise<HubKeys | null> => {
    for (; known instanceof SecretError; known = await attempt()) {
      log.warn("the hub waits for its secret store", { code: known.code, error: known });
      if (await closedWithin(TRY_AGAIN_MS, closing.signal)) return null;
    }
    return known;
  })();
  opened.catch(() => undefined);
  return {
    keys: () => {
      if (known instanceof SecretError) throw known;
      return known;
    },
    get isOpen() {
      return !(known instanceof SecretError);
    },
    opened,
    close: () => closing.abort(),
  };
}

function closedWithin(ms: number, closing: AbortSignal): Promise<boolean> {
  if (closing.aborted) return Promise.resolve(true);
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      closing.removeEventListener("abort", end);
      resolve(closing.aborted);
    };
    const timer = setTimeout(end, ms);
    closing.addEventListener("abort", end);
  });
}
