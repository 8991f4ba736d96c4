import { vi } from "vitest";

export const json = (body: unknown, status = 200): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });

/**
 * Runs `work` while some requests of this process get an answer of the test in place of the hub's: `answer` gets the number of the request from 1, and
 * returns an answer, null for a lost connection, or undefined for the hub's own answer. Also tells how many such requests there were.
 */
export async function answering<T>(
  which: (url: URL, method: string) => boolean,
  answer: (times: number, url: URL) => Response | null | undefined,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly asked: number }> {
  const real = globalThis.fetch;
  let asked = 0;
  vi.stubGlobal("fetch", async (address: string, request: RequestInit) => {
    const url = new URL(address);
    if (!which(url, request.method ?? "GET")) return real(address, request);
    asked += 1;
    const own = answer(asked, url);
    if (own === null) throw new TypeError("fetch failed");
    return own === undefined ? real(address, request) : own.clone();
  });
  try {
    return { result: await work(), asked };
  } finally {
    vi.unstubAllGlobals();
  }
}
