import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { pause, within } from "./pause.ts";
import { WakeSignal } from "./wake-signal.ts";

const A_DAY_MS = 86_400_000;

describe("a pause", () => {
  it("ends when its time is over, and leaves no listener at the signal", async () => {
    const { signal } = new AbortController();
    await pause(1, signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("ends without an error when the signal is aborted, also before it began", async () => {
    const stop = new AbortController();
    const resting = pause(A_DAY_MS, stop.signal);
    stop.abort(new Error("the hub stops"));
    await resting;
    await pause(A_DAY_MS, stop.signal);
  });
});

describe("work with a time limit", () => {
  it("returns the result of the work", async () => {
    expect(await within(A_DAY_MS, Promise.resolve("done"))).toBe("done");
    await expect(within(A_DAY_MS, Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  });

  it("returns null if the work takes longer", async () => {
    const work = Promise.withResolvers<string>();
    expect(await within(1, work.promise)).toBeNull();
    work.resolve("late");
  });
});

describe("a wake signal", () => {
  it("ends the present wait or the next one, and each raise ends only one", async () => {
    const wake = new WakeSignal();
    const waiting = wake.wait(A_DAY_MS);
    wake.raise();
    await waiting;
    expect(wake.raised).toBe(false);
    wake.raise();
    wake.raise();
    expect(wake.raised).toBe(true);
    await wake.wait(A_DAY_MS);
    expect(wake.raised).toBe(false);
    expect(
      await within(
        20,
        wake.wait(A_DAY_MS).then(() => "woken"),
      ),
    ).toBeNull();
    wake.raise();
  });
});
