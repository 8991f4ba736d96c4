import { join } from "node:path";
import type { Inventory } from "../../shared/inventory.ts";
import type { Log } from "../log.ts";
import { type RunTool, toolsOf } from "./exec.ts";
import { freeBytes, isPresent, listFolder, readText, removeFile, removeTree, writeAtomically } from "./files.ts";
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
  /** A file, a link, or a folder with all that is in it. Refuses a path whose folder does not really lie below the root. */
  removeTree(path: string): Promise<void>;
  isPresent(path: string): Promise<boolean>;
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
    removeTree: (path) => removeTree(root, at(path)),
    isPresent: (path) => isPresent(at(path)),
    list: (path) => listFolder(at(path)),
    freeBytes: (path) => freeBytes(at(path)),
    bootId,
    hostname,
    macs: () => readMacs(root),
    uptimeSeconds,
    inventory: async () => readInventory(await hostname(), await bootId(), log),
  };
}
