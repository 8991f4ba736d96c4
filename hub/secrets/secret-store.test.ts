import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietLog } from "../../test/support/log.ts";
import { hubPolicy, SKIPPED, type StartVault, VAULTS } from "../../test/support/vault-under-test.ts";
import { SecretError, type SecretStore } from "./port.ts";
import { readOrCreate } from "./read-or-create.ts";
import { openSealedFileStore } from "./sealed-file.ts";
import { openVaultStore } from "./vault.ts";

interface Opened {
  /** Opens the tested secret store a second time, as another process would open it. */
  readonly again: () => Promise<SecretStore>;
  readonly close: () => Promise<void>;
}

const folder = mkdtempSync(join(tmpdir(), "muster-secrets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function sealedFiles(): Promise<Opened> {
  const directory = join(folder, "sealed");
  return { again: () => openSealedFileStore({ directory }), close: async () => undefined };
}

/** In these tests, the hub's Vault token has only the policy from the documentation. */
async function vault(start: StartVault, login: "token" | "approle", casRequired: boolean): Promise<Opened> {
  const server = await start({ casRequired });
  await server.setPolicy("hub", hubPolicy(server.mount));
  const role = await server.addRole(["hub"]);
  const file = join(folder, `${login}-${randomUUID()}`);
  writeFileSync(file, login === "token" ? await server.createToken(["hub"]) : await role.newSecretId());
  const again = async (): Promise<SecretStore> =>
    openVaultStore({
      address: { ...server.address, deadlineMs: 10_000 },
      mount: server.mount,
      credentials:
        login === "token"
          ? { kind: "token", tokenFile: file }
          : { kind: "approle", mount: server.roleMount, roleId: role.roleId, secretIdFile: file },
      log: quietLog,
    });
  return { again, close: () => server.close() };
}

const STORES: [string, () => Promise<Opened>][] = [
  ["sealed files", sealedFiles],
  ...Object.entries(VAULTS).flatMap(([name, start]): [string, () => Promise<Opened>][] => [
    [`${name}, by token`, () => vault(start, "token", false)],
    [`${name}, by AppRole, with writes that must check and set`, () => vault(start, "approle", true)],
  ]),
];

it.skip.each(SKIPPED)("%s", () => undefined);
describe.each(STORES)("%s", (_name, open) => holdsTheContract(open));

function holdsTheContract(open: () => Promise<Opened>): void {
  let opened: Opened;
  let store: SecretStore;
  const root = `kv/contract-${randomUUID()}`;
  let used = 0;
  const written: string[] = [];
  const path = (): string => {
    const made = `${root}/secret-${++used}`;
    written.push(made);
    return made;
  };
  beforeAll(async () => {
    opened = await open();
    store = await opened.again();
  });
  afterAll(async () => {
    for (const one of written) await store.remove(one);
    await opened.close();
  });
  const codeOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => "no error",
      (error: unknown) => (error instanceof SecretError ? error.code : String(error)),
    );

  it("can be used", async () => {
    expect(await codeOf(store.check())).toBe("no error");
  });

  it("returns what was written, also to another process, and forgets what was removed", async () => {
    const at = path();
    const data = { user: "root", pass: "p$'\"\n\u2028ß", empty: "" };
    await store.write(at, data);
    expect(await (await opened.again()).read(at)).toEqual(data);
    await store.write(at, { only: "this" });
    expect(await store.read(at)).toEqual({ only: "this" });
    await store.remove(at);
    expect(await codeOf(store.read(at))).toBe("secret_missing");
    expect(await codeOf(store.remove(at))).toBe("no error");
    await store.write(at, { back: "again" });
    expect(await store.read(at)).toEqual({ back: "again" });
  });

  it("reports a path that was never written as missing, and names it", async () => {
    await expect(store.read(`${root}/never`)).rejects.toMatchObject({
      code: "secret_missing",
      path: `${root}/never`,
      message: expect.stringMatching(/write it first/),
    });
  });

  it("keeps one complete value of several simultaneous writes, and reports the writes that failed", async () => {
    const at = path();
    const other = await opened.again();
    const values = Array.from({ length: 12 }, (_, index) => ({ user: `u${index}`, pass: `p${index}`.repeat(500) }));
    const ended = await Promise.all(
      values.map((value, index) => codeOf((index % 2 === 0 ? store : other).write(at, value))),
    );
    for (const code of ended) expect(["no error", "secret_conflict"]).toContain(code);
    expect(values.filter((_, index) => ended[index] === "no error")).toContainEqual(await store.read(at));
  });

  it("replaces the version that was read, and never a later one", async () => {
    const at = path();
    await store.write(at, { v: "1" });
    const read = await store.readVersion(at);
    expect(read.data).toEqual({ v: "1" });
    await store.write(at, { v: "2" }, read.version);
    expect(await codeOf(store.write(at, { v: "late" }, read.version))).toBe("secret_conflict");
    expect(await store.read(at)).toEqual({ v: "2" });
    const { version } = await store.readVersion(at);
    await store.remove(at);
    expect(await codeOf(store.write(at, { v: "3" }, version))).toBe("secret_conflict");
    expect(await codeOf(store.read(at))).toBe("secret_missing");
  });

  it("lets only one of several writers replace a version", async () => {
    const at = path();
    await store.write(at, { v: "old" });
    const { version } = await store.readVersion(at);
    const other = await opened.again();
    const ended = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        codeOf((index % 2 ? store : other).write(at, { v: `${index}` }, version)),
      ),
    );
    expect(ended.filter((code) => code === "no error")).toHaveLength(1);
    expect(await store.read(at)).toEqual({ v: String(ended.indexOf("no error")) });
    expect(new Set(ended)).toEqual(new Set(["no error", "secret_conflict"]));
  });

  it("creates a missing secret once, of several that start at once", async () => {
    const at = path();
    const stores = [store, await opened.again(), await opened.again()];
    const got = await Promise.all(
      stores.map((one, index) => readOrCreate(one, at, async () => ({ v: String(index) }))),
    );
    for (const one of got) expect(one).toEqual(await store.read(at));
    expect(await codeOf(store.write(at, { v: "x" }, "nothing"))).toBe("secret_conflict");
  });

  it("puts no value into an error", async () => {
    const at = path();
    await store.write(at, { v: "1" });
    const conflict = await store.write(at, { v: "canary-value" }, "nothing").catch((error: unknown) => error);
    expect(conflict).toMatchObject({ code: "secret_conflict" });
    expect(inspect(conflict, { depth: 9 })).not.toContain("canary-value");
  });
}
