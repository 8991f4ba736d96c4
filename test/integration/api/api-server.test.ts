import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findTokenHolder } from "../../../hub/db/queries/api-tokens.ts";
import { ensureAdminToken } from "../../../hub/http/admin-token.ts";
import { startAdminServer } from "../../../hub/http/server.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

describe("the admin token", () => {
  let test: TestDatabase;
  let folder: string;
  beforeAll(async () => {
    test = await createTestDatabase();
    folder = mkdtempSync(join(tmpdir(), "muster-token-"));
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await test.drop();
  });
  const holderOf = (token: string) =>
    findTokenHolder(test.database.db, createHash("sha256").update(token).digest("hex"));

  it("is created once, readable only by its owner, kept over restarts, and created anew if its file is lost or wrong", async () => {
    const file = join(folder, "admin-token");
    const start = async () => {
      await ensureAdminToken(test.database.inTx, file);
      return readFileSync(file, "utf8").trim();
    };
    const first = await start();
    expect(first).toMatch(/^mstr_first_[0-9A-Za-z]{49}$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await holderOf(first)).toMatchObject({ name: "admin", role: "admin", sites: null, tenant: null });
    expect(await start()).toBe(first);
    const { rows } = await test.database.pool.query("select * from api_tokens");
    expect(JSON.stringify(rows)).not.toContain(first);
    rmSync(file);
    const second = await start();
    expect(await holderOf(first)).toBeNull();
    expect(await holderOf(second)).not.toBeNull();
    for (const content of ["", "guessed\n"]) {
      writeFileSync(file, content);
      expect(await holderOf(await start())).not.toBeNull();
    }
  });
});

describe("the admin server", () => {
  it("finishes a running answer before it closes, and accepts no request afterwards", async () => {
    const [asked, allowed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const fetchOne = async (): Promise<Response> => {
      asked.resolve();
      await allowed.promise;
      return new Response("done");
    };
    const server = await startAdminServer({ fetch: fetchOne }, { host: "127.0.0.1", port: 0 });
    const answer = fetch(`http://127.0.0.1:${server.port}/`);
    await asked.promise;
    const closed = server.close();
    allowed.resolve();
    expect(await (await answer).text()).toBe("done");
    await closed;
    await expect(fetch(`http://127.0.0.1:${server.port}/`)).rejects.toThrow();
  });

  it("refuses headers that are too large, and fails to start when its port is taken", async () => {
    const app = { fetch: () => new Response("ok") };
    const server = await startAdminServer(app, { host: "127.0.0.1", port: 0 });
    const first = await new Promise<string>((resolve, reject) => {
      const socket = connect(server.port, "127.0.0.1", () =>
        socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-long: ${"x".repeat(20_000)}\r\n\r\n`),
      );
      socket.once("data", (data) => resolve(data.toString("latin1").slice(0, 12)));
      socket.once("error", reject);
    });
    expect(first).toBe("HTTP/1.1 431");
    await expect(startAdminServer(app, { host: "127.0.0.1", port: server.port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
    await server.close();
  });
});
