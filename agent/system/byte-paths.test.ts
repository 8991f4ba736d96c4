/** Paths are bytes in each operation on files that the agent's cleaning steps use, also if a tenant chose names that are not UTF-8. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";

let host: HostFolder;
const inFolder = (...bytes: number[]): Buffer =>
  Buffer.concat([Buffer.from(`${host.path("folder")}/`), Buffer.from(bytes)]);
beforeEach(() => {
  host = new HostFolder();
  mkdirSync(host.path("folder"));
});
afterEach(() => host.remove());

it("lists a folder, and removes one file of it", async () => {
  for (const byte of [0xff, 0xfe]) writeFileSync(inFolder(byte), "");
  const names = await host.system.list("/folder");
  expect(names).toEqual(["\udcfe", "\udcff"]);
  expect((await host.system.listSome("/folder", 9)).sort()).toEqual(names);
  await host.system.remove(`/folder/${names[0]}`);
  expect(readdirSync(host.path("folder"), { encoding: "buffer" }).map((name) => [...name])).toEqual([[0xff]]);
});

it("names the file that a removal left", async () => {
  writeFileSync(inFolder(0xff), "");
  const limits = { signal: new AbortController().signal, deadline: performance.now() - 1, onProgress: () => undefined };
  const { left } = await host.system.removeConfined("/folder/\udcff", limits);
  expect(left).toEqual([{ path: `${host.path("folder")}/\udcff`, reason: "the time for the removal is over" }]);
});
