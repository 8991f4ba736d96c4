/** A limit in milliseconds for waits in which whole hosts are deployed or cleaned, on a machine that does other work too. */
export const LONG_WAIT_MS = 480_000;

/**
 * Polls until `look` returns a value other than undefined. The long time-out ends only a wait that can never succeed, because no test depends on
 * speed. An abort of `signal` ends the wait at once with the signal's reason, for example when another part of the test has failed. After a wait in
 * vain, `explain` says what the test found instead, so that one failure in CI is enough to see why.
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  options: { timeoutMs?: number; everyMs?: number; signal?: AbortSignal; explain?: () => Promise<string> } = {},
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? 240_000);
  let lastError: unknown;
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      const seen = await look();
      if (seen !== undefined) return seen;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (Date.now() > deadline) {
      const found = await options.explain?.().catch((error: unknown) => `no explanation: ${String(error)}`);
      const why = found === undefined ? "" : `\n${found}`;
      throw new Error(`Waited in vain for: ${what}${why}`, { cause: lastError });
    }
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 50));
  }
}
