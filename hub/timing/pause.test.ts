import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { pause, within } from "./pause.ts";
import { WakeSignal } from "./wake-signal.ts";

const A_DAY_MS = 86_400_000;

describe("a pause", () => {
  it("ends when its time has passed, and leaves nothing at the signal", async () => {
    const { signal } = new AbortController();
    await pause(1, signal);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("ends without an error once the signal is aborted, also when that was before it began", async () => {
    const stop = new AbortController();
    const resting = pause(A_DAY_MS, stop.signal);
    stop.abort(new Error("the hub stops"));
    await resting;
    await pause(A_DAY_MS, stop.signal);
  });
});

describe("work within a time", () => {
  it("gives what it gives", async () => {
    expect(await within(A_DAY_MS, Promise.resolve("done"))).toBe("done");
    await expect(within(A_DAY_MS, Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  });

  it("gives null when it takes longer", async () => {
    const work = Promise.withResolvers<string>();
    expect(await within(1, work.promise)).toBeNull();
    work.resolve("late");
  });
});

describe("a wake signal", () => {
  it("ends a wait that is under way, the next one when nobody waits, and each but once", async () => {
    const wake = new WakeSignal();
    const waiting = wake.wait(A_DAY_MS);
    wake.raise();
    await waiting;
    wake.raise();
    wake.raise();
    await wake.wait(A_DAY_MS);
    expect(
      await within(
        20,
        wake.wait(A_DAY_MS).then(() => "woken"),
      ),
    ).toBeNull();
    wake.raise();
  });
});
