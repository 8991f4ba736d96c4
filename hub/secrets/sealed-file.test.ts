import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecretError } from "./port.ts";
import { openSealedFileStore } from "./sealed-file.ts";

describe("the sealed file store", () => {
  let directory: string;
  beforeEach(() => {
    directory = join(mkdtempSync(join(tmpdir(), "muster-sealed-")), "secrets");
  });
  afterEach(() => rmSync(join(directory, ".."), { recursive: true, force: true }));

  const codeOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => "no error",
      (error: unknown) => (error instanceof SecretError ? error.code : String(error)),
    );
  const sealedFiles = () => readdirSync(directory).filter((name) => name.endsWith(".sealed"));

  it("gives back what was written, also after a restart, and forgets what was removed", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/a", { user: "root", pass: "p$'\"\n" });
    const reopened = await openSealedFileStore({ directory });
    expect(await reopened.read("kv/a")).toEqual({ user: "root", pass: "p$'\"\n" });
    await reopened.remove("kv/a");
    await reopened.remove("kv/a");
    expect(await codeOf(store.read("kv/a"))).toBe("secret_missing");
  });

  it("keeps neither the secret nor its path readable, and everything to the owner", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/maas/token", { token: "canary-value" });
    for (const name of readdirSync(directory)) {
      expect(statSync(join(directory, name)).mode & 0o077).toBe(0);
      expect(readFileSync(join(directory, name)).toString("latin1")).not.toMatch(/canary-value|kv\/maas/);
    }
  });

  it("refuses a damaged file, a swapped file, another key, and an open key", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/a", { v: "1" });
    const [a = ""] = sealedFiles();
    await store.write("kv/b", { v: "2" });
    const [b = ""] = sealedFiles().filter((name) => name !== a);
    renameSync(join(directory, a), join(directory, b));
    expect(await codeOf(store.read("kv/b"))).toBe("secret_corrupt");
    await store.write("kv/a", { v: "1" });
    const bytes = readFileSync(join(directory, a));
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    writeFileSync(join(directory, a), bytes);
    expect(await codeOf(store.read("kv/a"))).toBe("secret_corrupt");
    writeFileSync(join(directory, a), "");
    expect(await codeOf(store.read("kv/a"))).toBe("secret_corrupt");
    chmodSync(join(directory, "key"), 0o644);
    expect(await codeOf(openSealedFileStore({ directory }))).toBe("secret_store_unavailable");
  });

  it("makes one key when several open it at once", async () => {
    const stores = await Promise.all(Array.from({ length: 8 }, () => openSealedFileStore({ directory })));
    await stores[0]?.write("kv/a", { v: "1" });
    for (const store of stores) expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect(readdirSync(directory).filter((name) => name.startsWith("key"))).toEqual(["key"]);
  });
});
