import { access, constants, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Log } from "../../shared/log.ts";
import { BuildError, buildInChild } from "./build-in-child.ts";
import { type BuiltConsole, readBuiltConsole } from "./built-console.ts";
import { sourceVersion } from "./source-version.ts";

/**
 * A Muster package contains the built console in the folder `built`. A source checkout has no folder `built`, so the hub builds the console when
 * somebody requests it.
 */
const PACKAGED = fileURLToPath(new URL("./built/", import.meta.url));
const CHECKOUT_CACHE = fileURLToPath(new URL("../../node_modules/.cache/muster-console/", import.meta.url));
/** After a check whether the console's sources have changed, the hub does not check again within this time. */
const FRESH_MS = 1_000;
const TRY_AGAIN_AFTER_MS = 10_000;

export type ConsoleState =
  | { readonly kind: "ready"; readonly built: BuiltConsole }
  | { readonly kind: "building" }
  | { readonly kind: "failed"; readonly lines: readonly string[] };

export interface ConsoleOptions {
  /** The hub's state folder, in which the hub builds the console if the checkout's own folder is read-only. */
  readonly stateDir: string;
  readonly log: Log;
  /** The folder for builds of the console in place of the usual folders; only tests set it. */
  readonly cache?: string;
}

/** The console of a hub. `look` never waits for a build of the console, which runs in a child process, so the API stays as fast as without a console. */
export class Console {
  readonly #options: ConsoleOptions;
  readonly #closing = new AbortController();
  #ready: { readonly version: string; readonly built: BuiltConsole } | null = null;
  #failed: { readonly version: string; readonly lines: readonly string[]; readonly at: number } | null = null;
  #building: Promise<void> | null = null;
  #looked: { readonly at: number; readonly version: Promise<string> } | null = null;

  constructor(options: ConsoleOptions) {
    this.#options = options;
  }

  async look(): Promise<ConsoleState> {
    const version = await this.#version();
    if (this.#ready?.version !== version) {
      const folder = await this.#builtFolder(version);
      if (folder !== null) this.#ready = { version, built: await readBuiltConsole(folder) };
    }
    if (this.#ready?.version === version) return { kind: "ready", built: this.#ready.built };
    const failed = this.#failed;
    if (failed?.version === version && performance.now() - failed.at < TRY_AGAIN_AFTER_MS)
      return { kind: "failed", lines: failed.lines };
    this.#building ??= this.#build(version).finally(() => {
      this.#building = null;
    });
    return { kind: "building" };
  }

  /** Returns the files of the newest built console that `look` has found; if `look` has found none yet, calls `look` first. */
  async assets(): Promise<BuiltConsole["assets"]> {
    if (this.#ready !== null) return this.#ready.built.assets;
    const state = await this.look();
    return state.kind === "ready" ? state.built.assets : new Map();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#building;
  }

  #version(): Promise<string> {
    const now = performance.now();
    if (this.#looked === null || now - this.#looked.at > FRESH_MS)
      this.#looked = { at: now, version: isFolder(PACKAGED).then((there) => (there ? "packaged" : sourceVersion())) };
    return this.#looked.version;
  }

  #caches(): string[] {
    const { cache, stateDir } = this.#options;
    return cache === undefined ? [CHECKOUT_CACHE, join(stateDir, "console")] : [cache];
  }

  async #builtFolder(version: string): Promise<string | null> {
    if (version === "packaged") return PACKAGED;
    for (const cache of this.#caches()) if (await isFolder(join(cache, version))) return join(cache, version);
    return null;
  }

  async #build(version: string): Promise<void> {
    const { log } = this.#options;
    const began = performance.now();
    log.info("the console is being built", { version });
    try {
      await buildInChild(await this.#writableCache(), version, this.#closing.signal);
      log.info("the console was built", { version, milliseconds: Math.round(performance.now() - began) });
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      const lines = error instanceof BuildError ? [error.message, ...error.lines] : [String(error)];
      this.#failed = { version, lines, at: performance.now() };
      log.error("the console cannot be built", { version, error, output: lines.join("\n") });
    }
  }

  async #writableCache(): Promise<string> {
    const caches = this.#caches();
    for (const cache of caches) if (await isWritable(cache)) return cache;
    throw new BuildError(`no folder for the build is writable: ${caches.join(", ")}`, "");
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

const isWritable = (folder: string): Promise<boolean> =>
  mkdir(folder, { recursive: true })
    .then(() => access(folder, constants.W_OK))
    .then(
      () => true,
      () => false,
    );
