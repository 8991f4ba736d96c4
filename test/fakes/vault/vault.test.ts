import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startVault, type VaultServer } from "./server.ts";

/** The double refuses what Vault refuses, in Vault's words where a client may compare them. */
let server: VaultServer;
let token: string;
beforeEach(async () => {
  server = await startVault();
  server.vault.mount("kv");
  server.vault.tokens.policies.set("all", { "kv/*": ["create", "read", "update", "delete"] });
  token = server.vault.tokens.create({ policies: ["all"], ttl: 60, maxTtl: 100 });
});
afterEach(() => server.close());

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(`${server.url}/v1/${path}`, {
    method,
    headers: { "X-Vault-Token": token, ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
}
const put = (data: unknown, cas?: number) =>
  ask("POST", "kv/data/a", { data, ...(cas === undefined ? {} : { options: { cas } }) });

describe("the double of Vault", () => {
  it("counts versions, checks and sets, and tells a deleted version with a 404", async () => {
    expect(await ask("GET", "kv/data/a")).toEqual({ status: 404, body: { errors: [] } });
    expect((await put({ v: 1 }, 0)).body.data.version).toBe(1);
    expect((await put({ v: 2 }, 0)).body.errors).toEqual(["check-and-set parameter did not match the current version"]);
    expect((await put({ v: 2 }, 1)).body.data.version).toBe(2);
    expect((await ask("GET", "kv/data/a?version=1")).body.data.data).toEqual({ v: 1 });
    expect((await ask("DELETE", "kv/data/a")).status).toBe(204);
    const deleted = await ask("GET", "kv/data/a");
    expect([deleted.status, deleted.body.data.data, deleted.body.data.metadata.version]).toEqual([404, null, 2]);
    expect((await ask("GET", "kv/metadata/a")).body.data.current_version).toBe(2);
    expect((await ask("DELETE", "kv/metadata/a")).status).toBe(204);
    expect((await put({ v: 1 }, 0)).body.data.version).toBe(1);
  });

  it.each([
    ["no data", () => ask("POST", "kv/data/a", { v: 1 }), 400, "no data provided"],
    ["no JSON", () => ask("POST", "kv/data/a", "{"), 400, "failed to parse JSON input"],
    ["a mount that is none", () => ask("GET", "no/data/a"), 403, "permission denied"],
    ["no token", () => ask("GET", "kv/data/a", undefined, { "X-Vault-Token": "" }), 403, "permission denied"],
    [
      "another namespace",
      () => ask("GET", "kv/data/a", undefined, { "X-Vault-Namespace": "x" }),
      403,
      "permission denied",
    ],
    [
      "a login of nobody",
      () => ask("POST", "auth/approle/login", { role_id: "x", secret_id: "y" }),
      400,
      "invalid role or secret ID",
    ],
    ["a method that is none", () => ask("POST", "kv/metadata", {}), 405, "unsupported operation"],
  ])("refuses %s", async (_name, call, status, error) => {
    const answer = await call();
    expect([answer.status, answer.body.errors[0]]).toEqual([status, expect.stringContaining(error)]);
  });

  it("lets a token live for its lease, and no longer than its longest life however often it is renewed", async () => {
    const ttl = async () => (await ask("GET", "auth/token/lookup-self")).body?.data?.ttl;
    expect(await ttl()).toBe(60);
    server.vault.clock.advance(50);
    expect((await ask("POST", "auth/token/renew-self", {})).body.auth.lease_duration).toBe(50);
    server.vault.clock.advance(49);
    expect(await ttl()).toBe(1);
    server.vault.clock.advance(1);
    expect((await ask("GET", "auth/token/lookup-self")).status).toBe(403);
  });

  it("tells while it is sealed that it is, and nothing else", async () => {
    server.vault.seal();
    expect(await ask("GET", "kv/data/a")).toEqual({ status: 503, body: { errors: ["Vault is sealed"] } });
    expect(await ask("GET", "sys/health")).toMatchObject({ status: 503, body: { sealed: true } });
    expect(await ask("GET", "sys/seal-status")).toMatchObject({ status: 200, body: { sealed: true } });
  });
});
