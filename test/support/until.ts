/**
 * Polls until `look` gives something else than undefined; a deadline here is a test's patience, never an assertion on speed. `signal` ends the wait at
 * once with its own reason, e.g. when a part of the test has failed without which what is waited for cannot come.
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  options: { timeoutMs?: number; everyMs?: number; signal?: AbortSignal } = {},
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? 120_000);
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
    if (Date.now() > deadline) throw new Error(`Waited in vain for: ${what}`, { cause: lastError });
    await new Promise((resolve) => setTimeout(resolve, options.everyMs ?? 50));
  }
}
