import { describe, expect, it } from "vitest";
import { RequestLimiter } from "./limiter.ts";

function bench(limiter: RequestLimiter) {
  const running = new Map<string, () => void>();
  const done: Promise<void>[] = [];
  const start = (name: string, slow: boolean, signal?: AbortSignal): Promise<void> => {
    const task = limiter.run(slow, signal, () => new Promise<void>((end) => void running.set(name, end)));
    done.push(task);
    return task;
  };
  const end = async (name: string): Promise<void> => {
    const finish = running.get(name);
    running.delete(name);
    finish?.();
    await new Promise((turn) => setImmediate(turn));
  };
  return { start, end, running, done };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the request limiter of a site", () => {
  it("runs 8 requests at once, 4 of them slow, and lets quick requests pass slow ones that wait", async () => {
    const { start, end, running } = bench(new RequestLimiter());
    for (let i = 1; i <= 6; i += 1) void start(`slow${i}`, true);
    for (let i = 1; i <= 6; i += 1) void start(`quick${i}`, false);
    await turn();
    expect([...running.keys()]).toEqual(["slow1", "slow2", "slow3", "slow4", "quick1", "quick2", "quick3", "quick4"]);
    await end("quick1");
    expect(running.has("quick5")).toBe(true);
    await end("slow1");
    expect(running.has("slow5")).toBe(true);
    expect(running.size).toBe(8);
  });

  it("frees the place of a task that failed", async () => {
    const limiter = new RequestLimiter({ total: 1, slow: 1 });
    await expect(limiter.run(false, undefined, async () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await limiter.run(false, undefined, async () => 1)).toBe(1);
  });

  it("removes a cancelled request from the line without running it", async () => {
    const { start, end, running } = bench(new RequestLimiter({ total: 1, slow: 1 }));
    const stop = new AbortController();
    void start("first", false);
    const given = start("given up", false, stop.signal);
    void start("third", false);
    stop.abort(new Error("stop"));
    await expect(given).rejects.toThrow("stop");
    await end("first");
    expect([...running.keys()]).toEqual(["third"]);
    await expect(start("late", false, stop.signal)).rejects.toThrow("stop");
  });
});
