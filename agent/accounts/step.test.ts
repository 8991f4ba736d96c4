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

  it("shows no control characters", () => {
    expect(plain("a\u001b[2J\nb\u202ec\ud800", 100)).toBe("a?[2J?b?c\ufffd");
    expect(plain("abcdef", 6)).toBe("abcdef");
    expect(plain("abcdefg", 6)).toBe("abcde…");
  });

  it("names a few of many", () => {
    expect(namesIn(["a", "b"])).toBe("a, b");
    expect(namesIn(["a", "b", "c"], 2)).toBe("a, b and 1 more");
  });
});
