import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { State } from "./model.ts";

const DEBOUNCE_MS = 20;

/**
 * Keeps the simulated region's state in one JSON file, or stores nothing if there is no path. Each write renames a complete new state file over the
 * old file, so that a kill never leaves half a state.
 */
export class StateStore {
  readonly #path: string | null;
  #timer: NodeJS.Timeout | null = null;
  #state: State | null = null;

  constructor(path: string | null) {
    this.#path = path;
  }

  load(): State | null {
    if (this.#path === null) return null;
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
      throw error;
    }
    const state = JSON.parse(text) as State;
    if (state.schema !== 1)
      throw new Error(
        `The simulator's state file ${this.#path} has schema ${String(state.schema)}, not 1. Delete the file to start a new region.`,
      );
    return state;
  }

  /** Keeps the simulated region's changed state in memory, and writes the state to the file a few milliseconds later. */
  changed(state: State): void {
    if (this.#path === null) return;
    this.#state = state;
    this.#timer ??= setTimeout(() => this.flush(), DEBOUNCE_MS);
  }

  /** The simulator calls `flush` before each answer, so that a kill loses no change that a client knows of. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#path === null || this.#state === null) return;
    mkdirSync(dirname(this.#path), { recursive: true });
    const temporary = `${this.#path}.${process.pid}.new`;
    writeFileSync(temporary, JSON.stringify(this.#state));
    renameSync(temporary, this.#path);
    this.#state = null;
  }
}
