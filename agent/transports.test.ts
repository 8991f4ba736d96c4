import { describe, expect, it } from "vitest";
import { Transports } from "./transports.ts";

function tried(open: readonly string[], attempts: number): string[] {
  const transports = new Transports();
  return Array.from({ length: attempts }, () => {
    const kind = transports.next();
    if (open.includes(kind)) transports.opened(kind);
    else transports.failed(kind);
    return kind;
  });
}

describe("transports", () => {
  it("uses the WebSocket where it works", () => {
    expect(new Set(tried(["websocket", "long_poll"], 10))).toEqual(new Set(["websocket"]));
  });

  it("falls back after three failures, and then tries the WebSocket once between two long polls", () => {
    expect(tried(["long_poll"], 8)).toEqual([
      ...["websocket", "websocket", "websocket"],
      ...["long_poll", "websocket", "long_poll", "websocket", "long_poll"],
    ]);
  });

  it("alternates between both while neither works", () => {
    expect(tried([], 7).slice(3)).toEqual(["long_poll", "websocket", "long_poll", "websocket"]);
  });
});
