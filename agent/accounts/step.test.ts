import { describe, expect, it } from "vitest";
import { CleaningStep } from "../../shared/tasks/cleaning-step.ts";
import { cleaningStep, namesIn, plain } from "./step.ts";

describe("a cleaning step of the agent", () => {
  it("fits its schema whatever texts it gets", () => {
    const evil = `\u001b[2J\n\u202e\ud800${"x".repeat(2_000)}`;
    const evidence = Object.fromEntries(Array.from({ length: 40 }, (_none, index) => [`k${index}`, evil]));
    for (const target of [evil, "", "\ud800".repeat(300), `${"a".repeat(255)}\u{1f600}`])
      expect(CleaningStep.safeParse(cleaningStep("home", target, "failed", evil, evidence)).error).toBeUndefined();
  });

  it("tells no credential, also none that the cut of a long text would leave in pieces", () => {
    const secret = "hunter2-hunter2-hunter2";
    for (const length of [0, 490, 500, 505, 600]) {
      const text = `${"x".repeat(length)} password=${secret} and https://ada:${secret}@host/`;
      const { message, evidence } = cleaningStep("home", "/home/ada", "failed", text, {
        told: text.slice(-100),
        count: 3,
      });
      expect(JSON.stringify({ message, evidence })).not.toContain("hunter");
      expect(evidence["count"]).toBe(3);
    }
  });

  it("leaves the target as it is, because the hub compares it with names that it knows", () => {
    const serial = "S5GXNX0Tabcdefghijklmnopqrstuvwxyz0123456789";
    expect(cleaningStep("disk", serial, "ok", "").target).toBe(serial);
  });

  it("shows no control characters", () => {
    expect(plain("a\udcff", 100)).toBe("a\\xff");
    expect(plain("a\u001b[2J\nb\u202ec\ud800", 100)).toBe("a?[2J?b?c\ufffd");
    expect(plain("abcdef", 6)).toBe("abcdef");
    expect(plain("abcdefg", 6)).toBe("abcde…");
  });

  it("names a few of many", () => {
    expect(namesIn(["a", "b"])).toBe("a, b");
    expect(namesIn(["a", "b", "c"], 2)).toBe("a, b and 1 more");
  });
});
