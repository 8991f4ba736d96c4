import { describe, expect, it } from "vitest";
import { type LogLevel, logTo } from "./log.ts";

function heard(level: LogLevel, stackLines = 0) {
  const lines: unknown[] = [];
  const sink = (line: string) => void lines.push(JSON.parse(line));
  return { lines, log: logTo({ sink, now: () => new Date(0), stackLines }, level) };
}
const time = "1970-01-01T00:00:00.000Z";

describe("a log", () => {
  it("writes one JSON object per line, with the logger's fields before the line's fields", () => {
    const { lines, log } = heard("debug");
    log.with({ site_id: "s", n: 1 }).warn("a look failed", { n: 2 });
    expect(lines).toEqual([{ time, level: "warn", message: "a look failed", site_id: "s", n: 2 }]);
  });

  it("drops lines below its level", () => {
    const { lines, log } = heard("warn");
    log.debug("d");
    log.info("i");
    log.warn("w");
    log.error("e");
    expect(lines).toMatchObject([{ message: "w" }, { message: "e" }]);
  });

  it("writes an error's name, message, code and causes, and the configured part of its stack", () => {
    const cause = Object.assign(new TypeError("refused"), { code: "ECONNREFUSED" });
    const error = new Error("no answer", { cause });
    const { lines, log } = heard("info");
    log.info("m", { error });
    const told = {
      name: "Error",
      message: "no answer",
      cause: { name: "TypeError", message: "refused", code: "ECONNREFUSED" },
    };
    expect(lines).toEqual([{ time, level: "info", message: "m", error: told }]);
    const long = heard("info", 2);
    long.log.info("m", { error });
    expect(long.lines).toMatchObject([{ error: { ...told, stack: [expect.any(String), expect.any(String)] } }]);
  });
});
