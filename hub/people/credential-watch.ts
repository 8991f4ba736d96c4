import type { Credential } from "./credential.ts";

const LOOK_EVERY_MS = 1_000;

/** How an open event stream learns whether the credential of its client is still valid. */
export interface Holds {
  isValid(): Promise<boolean>;
  /** Calls `ended` when the credential is no longer valid. The returned function ends the watch. */
  follow(ended: () => void): () => void;
}

/**
 * Checks the credentials of open event streams repeatedly, because a stream lasts longer than the check of the credential at its start. Once each
 * second the hub checks each credential once, however many event streams use it. If the database does not answer, the hub cannot check a credential,
 * and keeps its event streams open.
 */
export class CredentialWatch {
  readonly #isValid: (credential: Credential) => Promise<boolean>;
  readonly #followed = new Map<string, { readonly credential: Credential; readonly ends: Set<() => void> }>();
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | null = null;
  #looking = false;

  constructor(isValid: (credential: Credential) => Promise<boolean>, everyMs = LOOK_EVERY_MS) {
    this.#isValid = isValid;
    this.#everyMs = everyMs;
  }

  holdsOf(credential: Credential): Holds {
    return { isValid: () => this.#isValid(credential), follow: (ended) => this.#follow(credential, ended) };
  }

  #follow(credential: Credential, ended: () => void): () => void {
    const one = this.#followed.get(credential.tokenSha256) ?? { credential, ends: new Set() };
    this.#followed.set(credential.tokenSha256, one);
    one.ends.add(ended);
    this.#timer ??= setInterval(() => void this.#look(), this.#everyMs).unref();
    return () => {
      one.ends.delete(ended);
      if (one.ends.size === 0) this.#followed.delete(credential.tokenSha256);
      if (this.#followed.size > 0 || this.#timer === null) return;
      clearInterval(this.#timer);
      this.#timer = null;
    };
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    for (const { credential, ends } of [...this.#followed.values()]) {
      const valid = await this.#isValid(credential).catch(() => true);
      if (!valid) for (const end of [...ends]) end();
    }
    this.#looking = false;
  }
}
