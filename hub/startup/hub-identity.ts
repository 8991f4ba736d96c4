import type { Log } from "../../shared/log.ts";
import type { Db } from "../db/tx.ts";
import { HubAuthority } from "../gateway/hub-authority.ts";
import { SecretError, type SecretStore } from "../secrets/port.ts";
import { pause } from "../timing/pause.ts";
import { periodically } from "../timing/periodically.ts";
import { ensureSameStore } from "./same-store.ts";

export interface HubIdentity {
  /** Returns the keys by which hosts recognize this hub. `keys` throws a `SecretError` if the hub cannot use its secret store. */
  keys(): HubAuthority;
  readonly isOpen: boolean;
  /**
   * The promise `opened` resolves with the hub's keys when the secret store has returned them, or with null if the hub stops first. The promise
   * `opened` rejects if the secret store is available but cannot be used, for example because the store belongs to another database.
   */
  readonly opened: Promise<HubAuthority | null>;
  close(): Promise<void>;
}

const TRY_AGAIN_MS = 3_000;
/** The time in milliseconds within which a hub follows a rotation of the hub's keys that another hub has performed. */
const LOOK_EVERY_MS = 1_000;

/**
 * Reads the hub's CA and task-signing key from the secret store, and follows their rotations. The first hub that finds no keys in the secret store
 * creates them. The hub starts even if the secret store is unreachable, and repeats its request until the secret store answers. Hosts and new
 * deployments wait for the hub's keys until the secret store answers. If the secret store is reachable but returns an error, `openIdentity` throws
 * the error at once.
 */
export async function openIdentity(options: { db: Db; secrets: SecretStore; log: Log }): Promise<HubIdentity> {
  const { db, secrets, log } = options;
  const open = async (): Promise<HubAuthority> => {
    await secrets.check();
    await ensureSameStore(db, secrets);
    return HubAuthority.open({ db, secrets });
  };
  const attempt = (): Promise<HubAuthority | SecretError> =>
    open().catch((error: unknown) => {
      if (error instanceof SecretError && error.isAway) return error;
      throw error;
    });
  let known = await attempt();
  const closing = new AbortController();
  const opened = (async (): Promise<HubAuthority | null> => {
    for (; known instanceof SecretError; known = await attempt()) {
      log.warn("the hub waits for its secret store", { code: known.code, error: known });
      await pause(TRY_AGAIN_MS, closing.signal);
      if (closing.signal.aborted) return null;
    }
    return known;
  })();
  const looking = opened.then((authority) => (authority === null ? null : look(authority, log))).catch(() => null);
  return {
    keys: () => {
      if (known instanceof SecretError) throw known;
      return known;
    },
    get isOpen() {
      return !(known instanceof SecretError);
    },
    opened,
    close: async () => {
      closing.abort();
      await (await looking)?.close();
    },
  };
}

const look = (authority: HubAuthority, log: Log) =>
  periodically({
    everyMs: LOOK_EVERY_MS,
    log,
    failed: "the hub cannot read which of its keys are valid",
    turn: async () => {
      if (await authority.refresh())
        log.info("the hub's keys have changed", {
          generation: authority.generation,
          sequence: authority.trust.sequence,
        });
    },
  });
