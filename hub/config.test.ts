import { describe, expect, it } from "vitest";
import { ConfigError, loadConfig } from "./config.ts";

describe("loadConfig", () => {
  it("has a default for everything, so that `npm run hub` needs no setting", () => {
    const config = loadConfig({});
    expect(config.databaseUrl).toBeNull();
    expect(config.http).toEqual({ host: "127.0.0.1", port: 8480 });
  });

  it("takes an empty variable as not set, as env files write it", () => {
    expect(loadConfig({ DATABASE_URL: "", MUSTER_HTTP_PORT: "" }).http.port).toBe(8480);
  });

  it("names every fault at once and never a value", () => {
    const load = () => loadConfig({ DATABASE_URL: "mysql://root:hunter2@db/x", MUSTER_HTTP_PORT: "99999" });
    expect(load).toThrow(ConfigError);
    expect(load).toThrow(/DATABASE_URL.*MUSTER_HTTP_PORT/);
    expect(load).not.toThrow(/hunter2/);
  });

  it("keeps the database URL out of logs", () => {
    const config = loadConfig({ DATABASE_URL: "postgres://muster:hunter2@db/muster" });
    expect(JSON.stringify(config)).not.toContain("hunter2");
    expect(config.databaseUrl?.reveal()).toContain("hunter2");
  });
});
