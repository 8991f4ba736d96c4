import type { Log } from "../../shared/log.ts";
import { SecretError, type SecretErrorCode, type SecretStore } from "./port.ts";

export interface StoreState {
  readonly code: "ok" | SecretErrorCode;
  /** A text that says what is wrong with the secret store, and what to do next. `detail` is null if the hub can use the secret store. */
  readonly detail: string | null;
  readonly since: Date;
}
export interface StoreWatch {
  state(): StoreState;
  close(): Promise<void>;
}

const EVERY_MS = 10_000;

/**
 * Checks regularly whether the hub can use the secret store, so that health requests need not wait for the store. `startStoreWatch` returns after the
 * first check.
 */
export async function startStoreWatch(secrets: SecretStore, log: Log, everyMs = EVERY_MS): Promise<StoreWatch> {
  let state: StoreState = { code: "ok", detail: null, since: new Date() };
  const look = async (): Promise<void> => {
    const next = await lookAt(secrets);
    if (next.code === state.code) return;
    state = { ...next, since: new Date() };
    if (next.code === "ok") log.info("the secret store can be used again");
    else log.warn("the secret store cannot be used", { code: next.code, detail: next.detail });
  };
  await look();
  let looking = Promise.resolve();
  let timer: NodeJS.Timeout | null = null;
  const plan = (): void => {
    timer = setTimeout(() => {
      looking = look().then(() => {
        if (timer !== null) plan();
      });
    }, everyMs);
  };
  plan();
  return {
    state: () => state,
    close: async () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await looking;
    },
  };
}

async function lookAt(secrets: SecretStore): Promise<{ code: StoreState["code"]; detail: string | null }> {
  try {
    await secrets.check();
    return { code: "ok", detail: null };
  } catch (error) {
    const known =
      error instanceof SecretError ? error : new SecretError("secret_store_unavailable", "any", "It failed", error);
    return { code: known.code, detail: known.message };
  }
}
