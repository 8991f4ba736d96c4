import { chmod, cp, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, relative } from "node:path";
import { execa } from "execa";
import { LICENSES } from "../hub/console/built-form.ts";
import { npmClosure } from "./npm-closure.ts";
import { ARCHITECTURES, type Architecture, type PackageSpec } from "./package-spec.ts";
import { RELEASE_KEYS } from "./sign.ts";
import { strippedName, stripTypes } from "./strip-types.ts";

const NOT_SHIPPED = /[.](test|fixture)[.]ts$/;
/**
 * Extensions of files in npm packages that Node.js does not load. Muster's Debian package contains the licence files of npm packages with any file
 * extension.
 */
const NPM_NOT_SHIPPED = new Set([".md", ".map", ".ts", ".cts", ".mts", ".flow", ".cc", ".hh", ".h", ".inc", ".def"]);
/** Folders of npm packages with binaries for the C library musl. The Node.js in Muster's Debian packages needs glibc. */
const FOR_MUSL = /[/]musl_[a-z0-9]+([/]|$)/;
const isShipped = (file: string): boolean => {
  if (FOR_MUSL.test(file)) return false;
  const name = basename(file).toLowerCase();
  if (/^(licen[cs]e|notice|copying)/.test(name)) return true;
  return !NPM_NOT_SHIPPED.has(extname(name));
};

interface Stage {
  readonly repository: string;
  readonly root: string;
  readonly spec: PackageSpec;
  readonly architecture: Architecture;
  readonly version: string;
}

/**
 * Puts the package's files below `root` as they are installed on the host. The argument `built` names the Debian packages that were built before this
 * package. Contents and modes of the package's files depend on the repository only.
 */
export async function stageFiles(stage: Stage, built: readonly string[]): Promise<void> {
  const { repository, root, spec } = stage;
  const home = join(root, "usr/lib/muster", spec.home);
  await mkdir(home, { recursive: true });
  for (const folder of spec.sources) await copySources(stage, folder, join(home, folder));
  if (spec.console !== null) await buildConsole(repository, join(home, spec.console));
  await copyNodeModules(stage, home);
  await copyRuntime(stage, home);
  // The package.json in Muster's Debian package tells Node.js that the package's sources are ES modules. The package.json in Muster's Debian package
  // also tells a person the version of the package.
  const manifest = { name: spec.name, version: stage.version, private: true, type: "module" };
  await writeFile(join(home, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const [command, program] of Object.entries(spec.commands)) await writeCommand(stage, command, program);
  await writeByProgram(stage);
  await stagePackagingFiles(stage, built);
}

/** Adds the completions and the man page, which the program `muster` itself writes from its commands. */
async function writeByProgram({ repository, root, spec }: Stage): Promise<void> {
  // For a build, Node.js keeps no cache of compiled code, so that the build writes nothing outside the package.
  const env = { NODE_DISABLE_COMPILE_CACHE: "1" };
  for (const [target, words] of Object.entries(spec.written)) {
    const { stdout } = await execa(process.execPath, [join(repository, "hub/cli/main.ts"), ...words], { env });
    await mkdir(dirname(join(root, target)), { recursive: true });
    await writeFile(join(root, target), `${stdout}\n`);
  }
}

/** Adds the package's files other than its program and runtime: units, configuration, documents, and contained packages. */
export async function stagePackagingFiles(stage: Stage, built: readonly string[]): Promise<void> {
  const { repository, root, spec } = stage;
  for (const [file, target] of Object.entries(spec.files)) {
    await mkdir(dirname(join(root, target)), { recursive: true });
    await cp(join(repository, "packaging", spec.home, file), join(root, target));
  }
  for (const name of spec.carries) {
    const file = built.find((one) => basename(one).startsWith(`${name}_`));
    if (file === undefined) throw new Error(`${spec.name} carries ${name}, which was not built before it`);
    await cp(file, join(root, "usr/share/muster/packages", basename(file)));
  }
  await writeDocs(stage);
  await normalizeModes(root);
}

async function copySources({ repository, spec }: Stage, folder: string, to: string): Promise<void> {
  const isSource = (file: string): boolean =>
    !NOT_SHIPPED.test(file) && !spec.leavesOut.includes(relative(repository, file));
  await cp(join(repository, folder), to, { recursive: true, filter: isSource });
  for (const file of await readdir(to, { recursive: true })) {
    if (extname(file) !== ".ts") continue;
    await writeFile(join(to, strippedName(file)), stripTypes(await readFile(join(to, file), "utf8")));
    await rm(join(to, file));
  }
}

/** Builds the console in a process of its own, with the program by which a hub in a source checkout builds it. */
async function buildConsole(repository: string, out: string): Promise<void> {
  await mkdir(out, { recursive: true });
  const program = join(repository, "hub/console/build/main.ts");
  await execa(process.execPath, [program, out], { env: { NODE_ENV: "production" } });
}

async function copyNodeModules({ repository, spec, architecture }: Stage, home: string): Promise<void> {
  const binaries = spec.binaries[architecture].map((name) => `node_modules/${name}`);
  for (const path of [...npmClosure(repository, spec.npm), ...binaries]) {
    const from = join(repository, path);
    await stat(from).catch(() => {
      throw new Error(`${path} is not installed; run npm ci, on ${architecture} for a package for ${architecture}`);
    });
    // `copyNodeModules` leaves out an inner node_modules, because the list of npm packages has an entry for each npm package in this folder.
    const inner = join(from, "node_modules");
    const filter = (file: string): boolean => !file.startsWith(inner) && isShipped(file);
    await cp(from, join(home, path), { recursive: true, filter, verbatimSymlinks: true });
  }
}

async function copyRuntime({ repository, architecture }: Stage, home: string): Promise<void> {
  const runtime = join(repository, "node_modules", `node-linux-${ARCHITECTURES[architecture]}`);
  await mkdir(join(home, "runtime"), { recursive: true });
  await cp(join(runtime, "bin/node"), join(home, "runtime/node"));
  await cp(join(runtime, "LICENSE"), join(home, "runtime/LICENSE"));
}

async function writeCommand({ root, spec }: Stage, command: string, program: string): Promise<void> {
  const home = `/usr/lib/muster/${spec.home}`;
  const node = [`${home}/runtime/node`, ...spec.nodeOptions].join(" ");
  const text = `#!/bin/sh\nexec ${node} ${home}/${strippedName(program)} "$@"\n`;
  await mkdir(join(root, "usr/bin"), { recursive: true });
  await writeFile(join(root, "usr/bin", command), text, { mode: 0o755 });
}

async function writeDocs({ repository, root, spec }: Stage): Promise<void> {
  const folder = join(root, "usr/share/doc", spec.name);
  await mkdir(folder, { recursive: true });
  const home = `/usr/lib/muster/${spec.home}`;
  const text = `${spec.name}: part of Muster.\nNode.js: ${home}/runtime/LICENSE\nnpm packages: the LICENSE file of each below ${home}/node_modules\n${spec.console === null ? "" : `npm packages in the console: ${home}/${spec.console}/${LICENSES}\n`}`;
  await writeFile(join(folder, "copyright"), text);
  await symlink("copyright", join(folder, "LICENSE"));
  for (const file of spec.docs) await cp(join(repository, "docs", file), join(folder, file));
  await cp(join(repository, "packaging", RELEASE_KEYS), join(folder, RELEASE_KEYS));
}

/** Sets fixed file modes, because the umask of the checkout must not influence the package. */
async function normalizeModes(folder: string): Promise<void> {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await normalizeModes(path);
    else if (entry.isFile()) await chmod(path, ((await stat(path)).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}
