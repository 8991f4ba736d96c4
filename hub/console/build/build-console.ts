import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "vite";
import { ASSETS, CONTENT_TYPES, LICENSES, NONCE_MARK } from "../built-form.ts";

const APP = fileURLToPath(new URL("../app/", import.meta.url));

/**
 * Browsers since the spring of 2024. The style sheets use `light-dark()`; for older browsers, which do not know it, the console would need a second
 * set of colours.
 */
const TARGET = ["chrome123", "edge123", "firefox120", "safari17.5"];

/**
 * Builds the console into the empty folder `out`. The bytes of the build depend only on the sources, on the lockfile and on Node's version, so two
 * builds of one checkout are equal. `buildConsole` needs the dev packages, so a hub runs it only in a child process.
 */
export async function buildConsole(out: string): Promise<void> {
  await build({
    root: APP,
    base: "/console/",
    configFile: false,
    envDir: false,
    publicDir: false,
    cacheDir: join(out, ".vite"),
    mode: "production",
    logLevel: "error",
    html: { cspNonce: NONCE_MARK },
    build: {
      outDir: out,
      assetsDir: ASSETS,
      license: { fileName: LICENSES },
      emptyOutDir: false,
      target: TARGET,
      cssTarget: TARGET,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 2_000,
    },
  });
  await rm(join(out, ".vite"), { recursive: true, force: true });
  const assets = await readdir(join(out, ASSETS));
  for (const name of assets.sort()) await compress(join(out, ASSETS, name));
}

/** Writes compressed copies of a file beside it, so that the hub never compresses an answer. */
async function compress(file: string): Promise<void> {
  if (CONTENT_TYPES[extname(file)] === undefined) throw new Error(`the hub knows no content type of ${file}`);
  const content = await readFile(file);
  const size = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  await writeFile(`${file}.br`, brotliCompressSync(content, { params: size }));
  await writeFile(`${file}.gz`, gzipSync(content, { level: 9 }));
}
