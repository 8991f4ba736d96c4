/**
 * Polls until `look` returns a value other than undefined. The long time-out ends only a wait that can never succeed, because no test depends on
 * speed. An abort of `signal` ends the wait at once with the signal's reason, for example when another part of the test has failed.
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
