import { join } from "node:path";
import type { Inventory } from "../../shared/inventory.ts";
import type { Log } from "../log.ts";
import { type RunTool, toolsOf } from "./exec.ts";
import { freeBytes, listFolder, readText, removeFile, writeAtomically } from "./files.ts";
import { readBootId, readHostname, readMacs, uptimeSeconds } from "./host.ts";
import { readInventory } from "./inventory.ts";

/**
 * All that the agent may do to its host; handlers have no other way. Paths are the host's own (`/etc/...`), whatever root they lie under.
 */
export interface System {
  readonly root: string;
  readonly run: RunTool;
  read(path: string): Promise<string | null>;
  write(path: string, text: string, mode: number): Promise<void>;
  remove(path: string): Promise<void>;
  /** Names in a folder, sorted; none when there is no such folder. */
  list(path: string): Promise<string[]>;
  freeBytes(path: string): Promise<number>;
  bootId(): Promise<string>;
  hostname(): Promise<string>;
  macs(): Promise<string[]>;
  uptimeSeconds(): number;
  inventory(): Promise<Inventory>;
}

export function systemAt(root: string, log: Log): System {
  const at = (path: string): string => join(root, path);
  const bootId = () => readBootId(root);
  const hostname = () => readHostname(root);
  return {
    root,
    run: toolsOf(root),
    read: (path) => readText(at(path)),
    write: (path, text, mode) => writeAtomically(at(path), text, mode),
    remove: (path) => removeFile(at(path)),
    list: (path) => listFolder(at(path)),
    freeBytes: (path) => freeBytes(at(path)),
    bootId,
    hostname,
    macs: () => readMacs(root),
    uptimeSeconds,
    inventory: async () => readInventory(await hostname(), await bootId(), log),
  };
}
