/** Polls until `look` gives something else than undefined; a deadline here is a test's patience, never an assertion on speed. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  options: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? 60_000);
  let lastError: unknown;
  for (;;) {
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
