import { spawnSync } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
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

  it("keeps neither the secret nor its path readable, and gives access only to the owner", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/maas/token", { token: "canary-value" });
    for (const name of readdirSync(directory)) {
      expect(statSync(join(directory, name)).mode & 0o077).toBe(0);
      expect(readFileSync(join(directory, name)).toString("latin1")).not.toMatch(/canary-value|kv\/maas/);
    }
  });

  it("refuses a damaged file, a swapped file, another key, and a key that others can read", async () => {
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

  it("creates one key if several open the store at once", async () => {
    const stores = await Promise.all(Array.from({ length: 8 }, () => openSealedFileStore({ directory })));
    await stores[0]?.write("kv/a", { v: "1" });
    for (const store of stores) expect(await store.read("kv/a")).toEqual({ v: "1" });
    expect(readdirSync(directory).filter((name) => name.startsWith("key"))).toEqual(["key"]);
  });

  it("leaves no temporary file when several write at once, with check-and-set or without", async () => {
    const [one, two] = [await openSealedFileStore({ directory }), await openSealedFileStore({ directory })];
    await one.write("kv/a", { v: "0" });
    const { version } = await one.readVersion("kv/a");
    await Promise.all(Array.from({ length: 10 }, (_, index) => codeOf(two.write("kv/a", { v: `${index}` }, version))));
    await Promise.all(Array.from({ length: 10 }, (_, index) => one.write("kv/a", { v: `${index}`.repeat(500) })));
    expect(readdirSync(directory).sort()).toEqual([sealedFiles()[0], "key"].sort());
  });

  it("continues after a writer that died during a check-and-set", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/a", { v: "1" });
    const { version } = await store.readVersion("kv/a");
    const claim = join(directory, `${sealedFiles()[0]}.next`);
    writeFileSync(claim, "left by a process that is gone");
    expect(await codeOf(store.write("kv/a", { v: "2" }, version))).toBe("secret_conflict");
    utimesSync(claim, new Date(0), new Date(0));
    expect(await codeOf(store.write("kv/a", { v: "2" }, version))).toBe("secret_conflict");
    expect(await codeOf(store.write("kv/a", { v: "2" }, version))).toBe("no error");
    expect(await store.read("kv/a")).toEqual({ v: "2" });
  });

  it("reports the store as unavailable if the disk is full, and keeps only the old value", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/a", { v: "old" });
    const script = `
      import { openSealedFileStore } from ${JSON.stringify(new URL("./sealed-file.ts", import.meta.url).href)};
      const [directory, other] = process.argv.slice(1);
      const store = await openSealedFileStore({ directory });
      for (const attempt of [() => store.write("kv/a", { v: "x".repeat(5000) }), () => openSealedFileStore({ directory: other })])
        await attempt().then(() => console.log("written"), (error) => console.log(error.code, error.name));`;
    // In this test, a limit of 0 bytes for the size of a file simulates a full disk.
    const limited = 'trap "" XFSZ; ulimit -f 0; exec "$0" --input-type=module -e "$1" "$2" "$3"';
    const ended = spawnSync("bash", ["-c", limited, process.execPath, script, directory, `${directory}-other`], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(ended.stdout.trim().split("\n")).toEqual(Array(2).fill("secret_store_unavailable SecretError"));
    expect(await store.read("kv/a")).toEqual({ v: "old" });
    expect(readdirSync(directory).sort()).toEqual([sealedFiles()[0], "key"].sort());
    expect(readdirSync(`${directory}-other`)).toEqual([]);
  });

  it("reports a path that is not a folder, a key of wrong length, and a missing folder", async () => {
    const file = `${directory}-file`;
    writeFileSync(file, "");
    expect(await codeOf(openSealedFileStore({ directory: file }))).toBe("secret_store_unavailable");
    const store = await openSealedFileStore({ directory });
    await store.write("kv/a", { v: "1" });
    writeFileSync(join(directory, "key"), "short");
    expect(await codeOf(openSealedFileStore({ directory }))).toBe("secret_store_unavailable");
    rmSync(directory, { recursive: true });
    expect(await codeOf(store.check())).toBe("secret_store_unavailable");
    expect(await codeOf(store.read("kv/a"))).toBe("secret_missing");
    expect(await codeOf(store.write("kv/a", { v: "2" }))).toBe("secret_store_unavailable");
    expect(await codeOf(store.remove("kv/a"))).toBe("no error");
  });

  it("puts neither value nor file content into an error", async () => {
    const store = await openSealedFileStore({ directory });
    await store.write("kv/a", { v: "canary-value" });
    const [name = ""] = sealedFiles();
    const bytes = readFileSync(join(directory, name));
    for (const cut of [0, 11, 27, bytes.length - 1]) {
      writeFileSync(join(directory, name), bytes.subarray(0, cut));
      const error = await store.read("kv/a").catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "secret_corrupt", path: "kv/a" });
      expect(inspect(error, { depth: 9 })).not.toContain("canary-value");
    }
  });
});
