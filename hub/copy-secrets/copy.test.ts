import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { quietLog } from "../../test/support/log.ts";
import { hubPolicy, SKIPPED, VAULTS } from "../../test/support/vault-under-test.ts";
import { type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";
import { openSealedFileStore } from "../secrets/sealed-file.ts";
import { openVaultStore } from "../secrets/vault.ts";
import { copySecrets, type Outcome } from "./copy.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-copy-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let folders = 0;
const newFolder = (): string => join(folder, String(folders++));
const sealed = (directory = newFolder()): Promise<SecretStore> => openSealedFileStore({ directory });

const needed = (...paths: string[]) => paths.map((path) => ({ path, needed: true }));
async function outcomes(...args: Parameters<typeof copySecrets>): Promise<string[]> {
  const told: string[] = [];
  for await (const { path, outcome } of copySecrets(...args)) told.push(`${path} ${outcome}`);
  return told;
}

const HELD = ["nothing", "a value", "another value", "damaged"] as const;
type Held = (typeof HELD)[number];
function outcomeOf(source: Held, target: Held, needed: boolean): Outcome {
  if (source === "nothing") return needed ? "missing" : "absent";
  if (source === "damaged") return "corrupt";
  if (target === "nothing") return "copied";
  return target === source ? "there_already" : "differs";
}

describe("copying secrets, whatever the two stores hold", () => {
  it("reports the result of each path, and writes only values that were missing", async () => {
    const folders = [newFolder(), newFolder()] as const;
    const [source, target] = [await sealed(folders[0]), await sealed(folders[1])];
    const put = async (store: SecretStore, directory: string, path: string, held: Held): Promise<void> => {
      if (held === "damaged")
        writeFileSync(join(directory, `${createHash("sha256").update(path).digest("hex")}.sealed`), "damaged");
      else if (held !== "nothing") await store.write(path, { held });
    };
    const heldAt = (store: SecretStore, path: string): Promise<string> =>
      store.read(path).then(
        ({ held = "" }) => held,
        (error: SecretError) => error.code,
      );
    const wanted: { path: string; needed: boolean; outcome: Outcome }[] = [];
    for (const a of HELD)
      for (const b of HELD)
        for (const needed of [true, false]) {
          const path = `kv/${a}/${b}/${needed}`;
          await put(source, folders[0], path, a);
          await put(target, folders[1], path, b);
          wanted.push({ path, needed, outcome: outcomeOf(a, b, needed) });
        }
    const all = (store: SecretStore) => Promise.all(wanted.map(({ path }) => heldAt(store, path)));
    const [inSource, inTarget] = [await all(source), await all(target)];
    const told = wanted.map(({ path, outcome }) => `${path} ${outcome}`);
    expect(await outcomes(wanted, source, target)).toEqual(told);
    const copied = (n: number) => wanted[n]?.outcome === "copied";
    expect(await all(source)).toEqual(inSource);
    expect(await all(target)).toEqual(inTarget.map((held, n) => (copied(n) ? inSource[n] : held)));
    const again = told.map((line) => line.replace(/ copied$/, " there_already"));
    expect(await outcomes(wanted, source, target)).toEqual(again);
  });

  it("is finished by another run after a stop before or after any call", async () => {
    const [source, target] = [await sealed(), await sealed()];
    const calls = 2 * 3;
    for (let call = 0; call < calls; call += 1)
      for (const effect of [true, false]) {
        const paths = [`kv/${call}/${effect}/a`, `kv/${call}/${effect}/b`];
        for (const path of paths) await source.write(path, { of: path });
        await expect(outcomes(needed(...paths), source, brokenAt(target, call, effect))).rejects.toThrow("gone");
        expect(await outcomes(needed(...paths), source, target)).toHaveLength(2);
        for (const path of paths) expect(await target.read(path)).toEqual({ of: path });
      }
  });
});

/** Makes a secret store whose calls fail from call number `at` on. If `effect` is true, the store carries out a failing call before it throws. */
function brokenAt(store: SecretStore, at: number, effect: boolean): SecretStore {
  let count = 0;
  const call = async <T>(path: string, act: () => Promise<T>): Promise<T> => {
    const done = count < at || effect ? act() : null;
    if (count++ >= at) {
      await done?.catch(() => undefined);
      throw new SecretError("secret_store_unavailable", path, "gone");
    }
    return done as Promise<T>;
  };
  return {
    ...store,
    read: (path) => call(path, () => store.read(path)),
    write: (path, data: SecretData, replaces) => call(path, () => store.write(path, data, replaces)),
  };
}

it.skip.each(SKIPPED)("%s", () => undefined);
describe.each(Object.entries(VAULTS))("secrets that are copied into and out of %s", (_name, start) => {
  it("exist in the target unchanged, once each, and no different value is overwritten", async () => {
    const vault = await start({ casRequired: true });
    await vault.setPolicy("hub", hubPolicy(vault.mount));
    const tokenFile = join(folder, `token-${folders}`);
    writeFileSync(tokenFile, await vault.createToken(["hub"]));
    const target = openVaultStore({
      address: { ...vault.address, deadlineMs: 10_000 },
      mount: vault.mount,
      credentials: { kind: "token", tokenFile },
      log: quietLog,
    });
    const source = await sealed();
    const document = { user_data: "é\n".repeat(700_000) };
    await source.write("kv/a", { user: "root", pass: "ü 'x' \\ \t" });
    await source.write("kv/b/c", { token: "1" });
    await source.write("kv/large", document);
    const wanted = [...needed("kv/a", "kv/b/c", "kv/large", "kv/gone"), { path: "kv/maybe", needed: false }];
    const told = ["kv/a copied", "kv/b/c copied", "kv/large copied", "kv/gone missing", "kv/maybe absent"];
    expect(await outcomes(wanted, source, target)).toEqual(told);
    expect(await target.read("kv/large")).toEqual(document);
    await source.write("kv/b/c", { token: "2" });
    // The test removes the secret as an operator would, which leaves a deleted version of the secret in the target store.
    await target.remove("kv/large");
    expect(await outcomes(wanted, source, target)).toEqual([
      "kv/a there_already",
      "kv/b/c differs",
      "kv/large copied",
      "kv/gone missing",
      "kv/maybe absent",
    ]);
    expect(await target.read("kv/b/c")).toEqual({ token: "1" });
    const back = await sealed();
    expect(await outcomes(needed("kv/a", "kv/b/c", "kv/large"), target, back)).toEqual(
      ["kv/a", "kv/b/c", "kv/large"].map((path) => `${path} copied`),
    );
    expect(await back.read("kv/a")).toEqual(await source.read("kv/a"));
    target.close();
    await vault.close();
  });
});

describe("secrets that are copied while another process writes", () => {
  const elsewhere = (store: SecretStore, write: () => Promise<void>): SecretStore => ({
    ...store,
    write: async (...args) => {
      await write();
      await store.write(...args);
    },
  });

  it("are compared with the value that the other process wrote first", async () => {
    const [source, target] = [await sealed(), await sealed()];
    await source.write("kv/a", { v: "1" });
    const same = elsewhere(target, () => target.write("kv/a", { v: "1" }));
    expect(await outcomes(needed("kv/a"), source, same)).toEqual(["kv/a copied"]);
    await target.remove("kv/a");
    const other = elsewhere(target, () => target.write("kv/a", { v: "2" }));
    expect(await outcomes(needed("kv/a"), source, other)).toEqual(["kv/a differs"]);
    expect(await target.read("kv/a")).toEqual({ v: "2" });
  });

  it("do not count as copied if the target stores a different value", async () => {
    const [source, target] = [await sealed(), await sealed()];
    await source.write("kv/a", { v: "1" });
    const lossy: SecretStore = { ...target, write: (path) => target.write(path, { v: "" }) };
    expect(await outcomes(needed("kv/a"), source, lossy)).toEqual(["kv/a differs"]);
  });
});
