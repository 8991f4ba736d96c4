import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ChainPoint, START } from "../../shared/audit-chain.ts";
import { KeptHeads } from "./kept-heads.ts";

let folder: string;
let heads: KeptHeads;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-heads-"));
  heads = await KeptHeads.open(folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (sequence: number, letter: string): ChainPoint => ({ sequence, entry_sha256: letter.repeat(64) });
const present = async () => true;
const gone = async () => false;
const NOW = "audit-head.json";
const lost = (sequence: number): string => `audit-head.lost-${sequence}.json`;
const listed = async () => (await heads.list()).toSorted((a, b) => (a.file < b.file ? -1 : 1));

describe("the kept head of the audit chain", () => {
  it("is the newest end of the chain, also after a restart of the hub", async () => {
    expect(await heads.keep(START, gone)).toBeNull();
    expect(await heads.list()).toEqual([]);
    expect(await heads.keep(at(3, "a"), gone)).toBeNull();
    expect(await heads.keep(at(5, "b"), present)).toBeNull();
    heads = await KeptHeads.open(folder);
    expect(await heads.list()).toEqual([{ file: NOW, ...at(5, "b") }]);
    const unasked = () => Promise.reject(new Error("the end has not changed"));
    expect(await heads.keep(at(5, "b"), unasked)).toBeNull();
    expect(await heads.countLost()).toBe(0);
  });

  it("is lost if the chain has another entry of its number", async () => {
    await heads.keep(at(3, "a"), gone);
    expect(await heads.keep(at(3, "b"), gone)).toEqual(at(3, "a"));
    expect(await listed()).toEqual([
      { file: NOW, ...at(3, "b") },
      { file: lost(3), ...at(3, "a") },
    ]);
    expect(await heads.countLost()).toBe(1);
  });

  it("is lost once if the chain has no entry any more, and a new chain has a head again", async () => {
    await heads.keep(at(3, "a"), gone);
    expect(await heads.keep(START, gone)).toEqual(at(3, "a"));
    expect(await heads.keep(START, gone)).toBeNull();
    expect(await heads.list()).toEqual([{ file: lost(3), ...at(3, "a") }]);
    heads = await KeptHeads.open(folder);
    expect(await heads.keep(at(1, "c"), gone)).toBeNull();
    expect((await listed()).map(({ file }) => file)).toEqual([NOW, lost(3)]);
  });

  it("is written by two hubs at once that share a folder and have one process id, as in containers", async () => {
    const hubs = [heads, await KeptHeads.open(folder)];
    const writes = Array.from({ length: 40 }, (_, n) => hubs[n % 2]?.keep(at(n + 1, "a"), present));
    expect(await Promise.all(writes)).toEqual(Array(40).fill(null));
    expect((await heads.list()).map(({ file }) => file)).toEqual([NOW]);
  });

  it("is never taken from a damaged file, which somebody may have changed on purpose", async () => {
    const refusal = /audit-head\.json is no head of the audit chain\. Move the file away\./;
    writeFileSync(join(folder, NOW), '{"sequence":0}');
    await expect(KeptHeads.open(folder)).rejects.toThrow(refusal);
    rmSync(join(folder, NOW));
    mkdirSync(join(folder, NOW));
    await expect(KeptHeads.open(folder)).rejects.toThrow(refusal);
  });
});
