import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeContexts } from "./context-file.ts";
import { type From, inForce } from "./in-force.ts";

let folder: string;
let env: Record<string, string>;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "muster-contexts-"));
  env = { MUSTER_CONFIG: join(folder, "deep/contexts.json") };
  const west = { url: "https://west.example", ca_file: "/west.pem", token_file: "/west.token" };
  writeContexts(env, { version: 1, current: "east", contexts: { east: { url: "https://east.example" }, west } });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const from = (one: From | null) => (one === null ? null : `${one.value} <- ${one.from}`);
const found = async (flags: Record<string, string>, more: Record<string, string> = {}) => {
  const { url, caFile, tokenFile, tokenVariable, login } = await inForce(flags, { ...env, ...more });
  return [url, caFile, tokenFile ?? tokenVariable].map(from).concat(login);
};

describe("the hub of a command", () => {
  it("is named by the flag, then by the environment, then by the current context", async () => {
    const own = { MUSTER_URL: "http://own.example/", MUSTER_CONTEXT: "west" };
    expect(await found({ hub: "http://flag.example/" }, own)).toEqual([
      "http://flag.example <- --hub",
      null,
      null,
      "http://flag.example",
    ]);
    expect(await found({ context: "west" }, own)).toEqual([
      "https://west.example <- context west",
      "/west.pem <- context west",
      "/west.token <- context west",
      "context west at https://west.example",
    ]);
    expect(await found({}, own)).toEqual(["http://own.example <- MUSTER_URL", null, null, "http://own.example"]);
    expect((await found({}, { MUSTER_CONTEXT: "west" }))[0]).toBe("https://west.example <- context west");
    expect(await found({})).toEqual([
      "https://east.example <- context east",
      null,
      null,
      "context east at https://east.example",
    ]);
    expect(await found({}, { MUSTER_CONFIG: join(folder, "none") })).toEqual([
      "http://127.0.0.1:8480 <- default",
      null,
      null,
      "http://127.0.0.1:8480",
    ]);
  });

  it("gets the CA and the token of a context only if the context names the hub, and weaker than flags and environment", async () => {
    expect(await found({ hub: "https://other.example" }, { MUSTER_CONTEXT: "west" })).toEqual([
      "https://other.example <- --hub",
      null,
      null,
      "https://other.example",
    ]);
    const own = { MUSTER_CA_FILE: "/own.pem", MUSTER_TOKEN: "t" };
    expect((await found({ context: "west" }, own)).slice(1, 3)).toEqual([
      "/own.pem <- MUSTER_CA_FILE",
      "t <- MUSTER_TOKEN",
    ]);
    const flags = { context: "west", "ca-file": "/flag.pem", "token-file": "/flag.token" };
    expect((await found(flags, own)).slice(1, 3)).toEqual(["/flag.pem <- --ca-file", "/flag.token <- --token-file"]);
    expect((await found({ context: "west" }, { ...own, MUSTER_TOKEN_FILE: "/own.token" }))[2]).toBe(
      "/own.token <- MUSTER_TOKEN_FILE",
    );
  });

  it("is refused if two flags name it, or if no context has the name", async () => {
    await expect(found({ hub: "http://a.example", context: "west" })).rejects.toThrow("both name a hub");
    await expect(found({ context: "north" })).rejects.toThrow(
      "There is no context north (--context). The contexts are: east, west.",
    );
    await expect(found({}, { MUSTER_CONTEXT: "north", MUSTER_CONFIG: "/nowhere" })).rejects.toThrow(
      "(MUSTER_CONTEXT). Add one",
    );
  });

  it("is read from a file that only its owner may read and change", async () => {
    const file = env["MUSTER_CONFIG"] ?? "";
    expect([statSync(file).mode & 0o777, statSync(join(folder, "deep")).mode & 0o777]).toEqual([0o600, 0o700]);
    for (const mode of [0o640, 0o604, 0o620]) {
      chmodSync(file, mode);
      await expect(found({})).rejects.toThrow(`Other users of this machine may read or change ${file}`);
    }
    chmodSync(file, 0o600);
  });
});
