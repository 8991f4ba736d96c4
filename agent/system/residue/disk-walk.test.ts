import { chmodSync, chownSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { childCommand } from "../residue.ts";
import { type DiskWalk, type WalkBounds, walkDisks } from "./disk-walk.ts";
import { listFolder, type Reading, readText } from "./reading.ts";

const MANY = { most: 1_000, maxBytes: 100_000 };
const PLENTY: WalkBounds = {
  setuid: MANY,
  executables: MANY,
  ownerless: MANY,
  ofTenant: MANY,
  folders: MANY,
  ms: 60_000,
};
const UID = process.getuid?.() ?? 0;

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  host.write("etc/passwd", `me:x:${UID}:${process.getgid?.()}::/:/bin/sh\n`);
  host.write("etc/group", `me:x:${process.getgid?.()}:\n`);
});
afterEach(() => host.remove());

const reading = (): Reading => ({
  root: host.root,
  tenant: { login_user: "ann", uid: 54_321 },
  run: host.system.run,
  digest: (text) => text,
  signal: new AbortController().signal,
  pauseMs: 0,
});
const walk = (bounds: Partial<WalkBounds> = {}): Promise<DiskWalk> => walkDisks(reading(), { ...PLENTY, ...bounds });

function plant(): void {
  for (let index = 0; index < 5; index += 1) {
    host.write(`srv/many/prog${index}`, "x", 0o755);
    chmodSync(host.path(`srv/many/prog${index}`), 0o4755);
  }
}

describe("a walk over the disks", () => {
  it.each(["setuid", "executables"] as const)(
    "keeps at most so many %s files and bytes of their paths",
    async (kind) => {
      plant();
      expect((await walk())[kind].all()).toHaveLength(5);
      expect((await walk({ [kind]: { most: 5, maxBytes: 75 } }))[kind].all()).toHaveLength(5);
      for (const bounds of [
        { most: 4, maxBytes: 75 },
        { most: 5, maxBytes: 74 },
      ]) {
        const found = await walk({ [kind]: bounds });
        expect(() => found[kind].all()).toThrow(/^There are 5 such files, .* for example \/srv\/many\/prog\d, /);
      }
    },
  );

  it.skipIf(UID !== 0)("keeps at most so many files of others (SKIPPED without root)", async () => {
    for (const [name, uid] of [
      ...["a", "b"].map((one) => [one, 54_321] as const),
      ["c", 4_242],
      ["d", 4_242],
    ] as const) {
      host.write(`srv/${name}`, "x");
      chownSync(host.path(`srv/${name}`), uid, 0);
    }
    const one = { most: 1, maxBytes: 1_000 };
    const found = await walk({ ofTenant: one, ownerless: one });
    expect(() => found.ofTenant.all()).toThrow("There are 2 such files");
    expect(() => found.ownerless.all()).toThrow("There are 2 such files");
    expect((await walk()).ofTenant.all()).toHaveLength(2);
  });

  it("counts the journals of the tenant's uid as files of the tenant, although they belong to root", async () => {
    const folder = "log/journal/0123456789abcdef0123456789abcdef";
    for (const name of ["user-54321.journal", "user-54321@0005.journal", "user-54321@0005-9.journal~"])
      host.write(`var/${folder}/${name}`, "x");
    host.write(`run/${folder}/user-54321.journal`, "x");
    for (const name of ["system.journal", "user-5432.journal", "user-543210.journal", "user-54321.journal.gz"])
      host.write(`var/${folder}/${name}`, "x");
    host.write("srv/user-54321.journal", "x");
    const { ofTenant } = await walk();
    expect(
      ofTenant
        .all()
        .map(({ path, uid }) => `${path} ${uid}`)
        .sort(),
    ).toEqual([
      `/run/${folder}/user-54321.journal 54321`,
      `/var/${folder}/user-54321.journal 54321`,
      `/var/${folder}/user-54321@0005-9.journal~ 54321`,
      `/var/${folder}/user-54321@0005.journal 54321`,
    ]);
  });

  it("gives up when too many folders wait", async () => {
    for (let index = 0; index < 20; index += 1) host.write(`srv/folder${index}/x`, "");
    await expect(walk({ folders: { most: 15, maxBytes: 10_000 } })).rejects.toThrow("too many folders to walk over");
    await expect(walk({ folders: { most: 100, maxBytes: 100 } })).rejects.toThrow("too many folders to walk over");
  });

  it("gives up when its time is over, and names what it has read and what to do", async () => {
    host.write("srv/one", "");
    await expect(walk({ ms: -1 })).rejects.toThrow(/^There are too many files: 1 were read .* scratch_folders /);
  });

  it("ends in the middle of a folder when its deadline has passed", async () => {
    host.write("srv/one/first", "");
    for (let index = 0; index < 1_100; index += 1) writeFileSync(host.path(`srv/one/${index}`), "");
    const abort = new AbortController();
    const ended = walkDisks({ ...reading(), signal: abort.signal }, PLENTY);
    setImmediate(() => abort.abort(new Error("The deadline has passed.")));
    await expect(ended).rejects.toThrow("The deadline has passed.");
  });
});

describe("what a tenant may fill", () => {
  it("is read up to a bound", async () => {
    host.write("home/ann/.ssh/authorized_keys", "x".repeat(70_000));
    const file = host.path("home/ann/.ssh/authorized_keys");
    expect(await readText(file, 70_000)).toHaveLength(70_000);
    await expect(readText(file, 69_999)).rejects.toThrow("more than 69999 bytes");
    expect(await readText(host.path("none"))).toBeNull();
    for (const name of ["c", "a", "b"]) host.write(`tmp/${name}`, "");
    expect(await listFolder(host.path("tmp"), 3)).toEqual(["a", "b", "c"]);
    await expect(listFolder(host.path("tmp"), 2)).rejects.toThrow("more than 2 names");
    expect(await listFolder(host.path("none"))).toEqual([]);
  });

  it("is read by a child whose memory is limited, with a cgroup of its own where systemd runs", () => {
    const plain = childCommand(false, "/x.ts");
    expect(plain[0]).toBe("nice");
    expect(plain.slice(-3)).toEqual([process.execPath, "--max-old-space-size=384", "/x.ts"]);
    const scoped = childCommand(true, "/x.ts");
    expect(scoped.slice(0, 4)).toEqual(["systemd-run", "--scope", "--quiet", "--collect"]);
    expect(scoped).toContain("--property=MemoryMax=768M");
    expect(scoped.slice(scoped.indexOf("--") + 1)).toEqual(plain);
  });
});
