/**
 * This program, which `npm run package` runs, builds the Debian packages of agent and hub, with checksums and a signature. The build of the Debian
 * packages needs dpkg-deb.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { z } from "zod";
import { LICENSES } from "../hub/console/built-form.ts";
import { VERSION } from "../shared/version.ts";
import { COMPRESSIONS, type Compression, packDeb } from "./deb.ts";
import { ARCHITECTURES, type Architecture, type PackageSpec } from "./package-spec.ts";
import { PACKAGES } from "./packages.ts";
import { Bundled, sbomName, sbomOf } from "./sbom.ts";
import { RELEASE_KEYS, signPackages } from "./sign.ts";
import { stageFiles } from "./stage-files.ts";

const USAGE = `Usage: npm run package -- [options]
  --out DIR          where the packages go (default .muster/packages)
  --arch ARCH        ${Object.keys(ARCHITECTURES).join(" or ")} (default this machine's; another needs its npm packages installed)
  --only NAME        one package alone
  --compress HOW     ${Object.keys(COMPRESSIONS).join(" or ")} (default xz; zstd is quick and larger)
  --release          fails unless the key's fingerprint is committed in packaging/${RELEASE_KEYS}
  --signing-key FILE Ed25519 key in PEM (default .muster/packages-key.pem, made when there is none)`;

const REPOSITORY = resolve(new URL("..", import.meta.url).pathname);

/** No file in a package has a later time than the last commit, so that the same commit gives the same bytes. */
async function commitTime(): Promise<number> {
  const given = process.env["SOURCE_DATE_EPOCH"];
  if (given !== undefined) return Number(given);
  const { stdout } = await execa("git", ["-C", REPOSITORY, "log", "-1", "--format=%ct"]);
  return Number(stdout);
}

/** Reads which npm packages the built console of a package contains. */
async function bundledIn(root: string, { home, console }: PackageSpec): Promise<z.output<typeof Bundled>[]> {
  if (console === null) return [];
  return z
    .array(Bundled)
    .parse(JSON.parse(await readFile(join(root, "usr/lib/muster", home, console, LICENSES), "utf8")));
}

const releaseKeys = async (): Promise<string[]> =>
  (await readFile(join(REPOSITORY, "packaging", RELEASE_KEYS), "utf8"))
    .split("\n")
    .map((line) => line.split("#")[0]?.trim() ?? "")
    .filter((line) => line !== "");

const oneOf = <T extends string>(flag: string, value: string, known: Readonly<Record<T, unknown>>): T => {
  if (Object.hasOwn(known, value)) return value as T;
  throw new Error(`--${flag} takes ${Object.keys(known).join(" or ")}, not ${value}`);
};

async function build(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: ".muster/packages" },
      arch: { type: "string", default: process.arch === "arm64" ? "arm64" : "amd64" },
      only: { type: "string" },
      compress: { type: "string", default: "xz" },
      "signing-key": { type: "string", default: ".muster/packages-key.pem" },
      release: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return void process.stdout.write(`${USAGE}\n`);
  const architecture: Architecture = oneOf("arch", values.arch, ARCHITECTURES);
  const compression: Compression = oneOf("compress", values.compress, COMPRESSIONS);
  const wanted = PACKAGES.filter((spec) => values.only === undefined || spec.name === values.only);
  const specs = PACKAGES.filter((spec) => wanted.some((one) => one === spec || one.carries.includes(spec.name)));
  if (specs.length === 0) throw new Error(`--only takes ${PACKAGES.map((spec) => spec.name).join(" or ")}`);
  const out = resolve(values.out);
  await mkdir(out, { recursive: true });
  const sourceDateEpoch = await commitTime();
  const made: string[] = [];
  for (const spec of specs) {
    const root = await mkdtemp(join(tmpdir(), "muster-package-"));
    try {
      await chmod(root, 0o755);
      const stage = { repository: REPOSITORY, root, spec, architecture, version: VERSION };
      await stageFiles(stage, made);
      const about = { ...stage, sourceDateEpoch, bundled: await bundledIn(root, spec) };
      const sbom = `${JSON.stringify(sbomOf(about), null, 1)}\n`;
      await writeFile(join(root, "usr/share/doc", spec.name, "sbom.cdx.json"), sbom, { mode: 0o644 });
      await writeFile(join(out, sbomName(about)), sbom);
      const file = await packDeb({ ...stage, sourceDateEpoch, compression }, out);
      process.stdout.write(`${file} (${((await stat(file)).size / 2 ** 20).toFixed(1)} MiB)\n`);
      made.push(file);
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  }
  const { fingerprint } = await signPackages(out, resolve(values["signing-key"]));
  if (values.release && !(await releaseKeys()).includes(fingerprint))
    throw new Error(
      `${fingerprint} is in no line of packaging/${RELEASE_KEYS}, by which others know a release's key. Name the release's key by --signing-key, or commit its fingerprint first.`,
    );
  process.stdout.write(`Signed by the key ${fingerprint}\n`);
}

try {
  await build();
} catch (error) {
  process.stderr.write(`No package was made: ${error instanceof Error ? error.message : String(error)}\n${USAGE}\n`);
  process.exitCode = 1;
}
