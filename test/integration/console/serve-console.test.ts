import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Console } from "../../../hub/console/console.ts";
import { type ApiHarness, startApi } from "../../support/api-harness.ts";
import { quietLog } from "../../support/log.ts";
import { until } from "../../support/until.ts";

const folder = mkdtempSync(join(tmpdir(), "muster-console-"));
const builtIn = (name: string): Console => new Console({ stateDir: folder, log: quietLog, cache: join(folder, name) });
const first = builtIn("first");
const second = builtIn("second");
let api: ApiHarness;

beforeAll(async () => {
  api = await startApi({ console: first });
});
afterAll(async () => {
  await api.close();
  for (const console of [first, second]) await console.close();
  rmSync(folder, { recursive: true, force: true });
});

const ready = (console: Console) =>
  until("the console to be built", async () => ((await console.look()).kind === "ready" ? true : undefined));

async function contentOf(name: string): Promise<Record<string, string>> {
  const [version = "", ...others] = await readdir(join(folder, name));
  expect(others).toEqual([]);
  const root = join(folder, name, version);
  const entries = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const contents = entries.map(async (entry) => [
    join(entry.parentPath, entry.name).slice(root.length),
    (await readFile(join(entry.parentPath, entry.name))).toString("base64"),
  ]);
  return Object.fromEntries(await Promise.all(contents));
}

/** The paths of the scripts and style sheets that the console's document names. */
async function assetPaths(): Promise<string[]> {
  const { text } = await api.page("/console/");
  return [...text.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
}

describe("the console of a source checkout", () => {
  it("is built at the first request, while the page says so and asks again by itself", async () => {
    const waiting = await api.page("/console/nodes");
    expect(waiting.status).toBe(200);
    expect(waiting.text).toContain("The console is being built");
    expect(waiting.text).toMatch(/<meta http-equiv="refresh"/);
    expect(waiting.headers.get("cache-control")).toBe("no-store");
    await ready(first);
    expect((await api.page("/console/nodes")).text).toContain('<div id="console">');
  });

  it("has the same bytes when it is built again, and another hub finds the build of the first", async () => {
    const other = builtIn("first");
    expect(await other.look()).toMatchObject({ kind: "ready" });
    await ready(second);
    const built = await contentOf("first");
    expect(Object.keys(built).length).toBeGreaterThan(10);
    expect(await contentOf("second")).toEqual(built);
  });

  it("says why it cannot be built", async () => {
    writeFileSync(join(folder, "a-file"), "");
    const broken = builtIn("a-file");
    expect(await broken.look()).toEqual({ kind: "building" });
    const failed = await until("the build to fail", async () => {
      const state = await broken.look();
      return state.kind === "failed" ? state : undefined;
    });
    expect(failed.lines[0]).toContain("no folder for the build is writable");
    await broken.close();
  });
});

describe("the console's document", () => {
  it("has an address with a slash at its end, so that every address of the console begins the same", async () => {
    const { status, headers } = await api.page("/console");
    expect([status, headers.get("location")]).toEqual([302, "/console/"]);
  });

  it("allows only the hub's own scripts, by a new nonce each time, and no cache keeps it", async () => {
    const [one, two] = [await api.page("/console/"), await api.page("/console/any/screen?status=active")];
    const policyOf = ({ headers }: typeof one) => headers.get("content-security-policy") ?? "";
    const nonceOf = (page: typeof one) => /'nonce-([^']+)'/.exec(policyOf(page))?.[1] ?? "";
    expect(policyOf(one).replaceAll(nonceOf(one), "N")).toBe(
      "default-src 'none'; script-src 'self' 'nonce-N'; style-src 'self' 'nonce-N'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(nonceOf(one)).not.toBe(nonceOf(two));
    expect(one.text.split(nonceOf(one)).length).toBeGreaterThan(2);
    expect(one.text.replaceAll(nonceOf(one), "")).toBe(two.text.replaceAll(nonceOf(two), ""));
    expect(one.headers.get("cache-control")).toBe("no-store");
  });
});

describe("a file of the console", () => {
  it("has its type, and a browser may keep it for ever", async () => {
    for (const path of await assetPaths()) {
      const answer = await api.page(path);
      expect(answer.headers.get("content-type")).toMatch(/^(text\/(javascript|css); charset=utf-8|image\/svg\+xml)$/);
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(answer.headers.get("vary")).toBe("accept-encoding");
      const again = await api.page(path, { "if-none-match": answer.headers.get("etag") ?? "" });
      expect(again).toMatchObject({ status: 304, text: "" });
    }
  });

  it("has the same content in each encoding", async () => {
    const { built } = (await first.look()) as Extract<Awaited<ReturnType<Console["look"]>>, { kind: "ready" }>;
    for (const { plain, encoded } of built.assets.values()) {
      expect(brotliDecompressSync(encoded.br).equals(plain)).toBe(true);
      expect(gunzipSync(encoded.gzip).equals(plain)).toBe(true);
    }
    const [path = ""] = (await assetPaths()).filter((one) => one.endsWith(".js"));
    expect((await api.page(path, { "accept-encoding": "gzip, br" })).headers.get("content-encoding")).toBe("br");
    expect((await api.page(path, { "accept-encoding": "gzip" })).headers.get("content-encoding")).toBe("gzip");
    expect((await api.page(path)).headers.get("content-encoding")).toBeNull();
  });

  it.each(["none.js", "..%2findex.html", "..%2f..%2f..%2fpackage.json", "index.html", "x.js.br"])(
    "that the build does not name is not found: %s",
    async (name) => {
      expect((await api.page(`/console/assets/${name}`)).status).toBe(404);
    },
  );
});
