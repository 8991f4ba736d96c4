import { describe, expect, it } from "vitest";
import { createKeptLog, LogRing } from "./log-ring.ts";

describe("the ring of log lines", () => {
  it("keeps the last thousand lines, and counts the dropped ones", () => {
    const ring = new LogRing();
    for (let n = 0; n < 2_500; n += 1) ring.keep(JSON.stringify({ n }));
    const { lines, dropped } = ring.read();
    expect(dropped).toBe(1_500);
    expect(lines).toHaveLength(1_000);
    expect([lines[0], lines.at(-1)]).toEqual([{ n: 1_500 }, { n: 2_499 }]);
  });

  it("keeps less than a mebibyte, counted in bytes", () => {
    const ring = new LogRing();
    for (let n = 0; n < 500; n += 1) ring.keep(JSON.stringify({ n, text: "é".repeat(4_000) }));
    const { lines, dropped } = ring.read();
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(JSON.stringify(line)), 0);
    expect(bytes).toBeLessThanOrEqual(1_048_576);
    expect(bytes).toBeGreaterThan(1_048_576 - 10_000);
    expect(lines.length + dropped).toBe(500);
  });

  it("keeps time, level and the beginning of the message of a line that is too long", () => {
    const { log, ring } = createKeptLog("info", () => undefined);
    log.error("a long one", { text: "x".repeat(20_000) });
    log.info("a short one");
    const [long, short] = ring.read().lines;
    expect(long).toMatchObject({ level: "error", message: "a long one", left_out: expect.any(Number) });
    expect(long).not.toHaveProperty("text");
    expect(short).toMatchObject({ message: "a short one" });
  });

  it.each([
    ["debug", ["debug", "info", "warn", "error"]],
    ["info", ["info", "warn", "error"]],
    ["error", ["error"]],
  ] as const)("keeps info and above while %s and above are written", (level, written) => {
    const seen: string[] = [];
    const { log, ring } = createKeptLog(level, (line, at) => {
      expect(JSON.parse(line).level).toBe(at);
      seen.push(at);
    });
    for (const at of ["debug", "info", "warn", "error"] as const) log.with({ part: "p" })[at]("said");
    expect(seen).toEqual(written);
    expect(ring.read().lines.map(({ level: at }) => at)).toEqual(["info", "warn", "error"]);
  });
});
