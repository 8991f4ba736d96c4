import { chownSync, lchownSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { removePosixIpc } from "./posix-ipc.ts";
import type { Revocation, Tenant } from "./tenant.ts";

const UID = 54_321;
const tenant: Tenant = { allocationId: "a", loginUser: "ada", uid: UID, home: "/home/ada", subUids: [] };
const isRoot = process.getuid?.() === 0;

let host: HostFolder;
let alive: number;
beforeEach(() => {
  host = new HostFolder();
  alive = 0;
  mkdirSync(host.path("dev/shm/shared/inner"), { recursive: true });
});
afterEach(() => host.remove());

const revocation = (plan = false): Revocation => ({
  system: host.system,
  tenant,
  plan,
  signal: new AbortController().signal,
  alive: () => {
    alive += 1;
  },
});
function plant(count: number, folder = "dev/shm", uid = UID): void {
  for (let index = 0; index < count; index += 1) {
    const path = host.path(`${folder}/object-${uid}-${index}`);
    writeFileSync(path, "");
    chownSync(path, uid, 0);
  }
}
const left = (folder = "dev/shm"): string[] => readdirSync(host.path(folder)).sort();

describe.skipIf(!isRoot)("the removal of a tenant's shared memory (SKIPPED without root)", () => {
  it("removes all objects, also with more of them than are in memory at once, and renews the lease", async () => {
    plant(620);
    plant(2, "dev/shm/shared/inner");
    plant(1, "dev/shm", 0);
    symlinkSync("/etc", host.path("dev/shm/link"));
    lchownSync(host.path("dev/shm/link"), UID, UID);
    const planned = await removePosixIpc(revocation(true), { objects: 10_000, namesAtOnce: 100 });
    expect(planned).toMatchObject({
      outcome: "planned",
      message: expect.stringMatching(/^At least \d+ objects would/),
    });
    expect(left()).toHaveLength(623);
    const step = await removePosixIpc(revocation(), { objects: 10_000, namesAtOnce: 100 });
    expect(step).toMatchObject({ outcome: "ok", evidence: { found: 623, left: 0 } });
    expect(left()).toEqual(["object-0-0", "shared"]);
    expect(left("dev/shm/shared/inner")).toEqual([]);
    expect(alive).toBeGreaterThan(0);
  });

  it("ends with a count when its number of objects is used up, and a second run goes on", async () => {
    plant(30);
    const bounds = { objects: 20, namesAtOnce: 100 };
    const first = await removePosixIpc(revocation(), bounds);
    expect(first.outcome).toBe("failed");
    expect(first.message).toMatch(/^\d+ objects were removed, and more are left: the step looks at 20 objects at most/);
    expect(left().length).toBeGreaterThan(10);
    expect(await removePosixIpc(revocation(), bounds)).toMatchObject({ outcome: "ok" });
    expect(left()).toEqual(["shared"]);
  });

  it("uses one deadline for all objects", async () => {
    plant(5);
    const { system } = host;
    let removed = 0;
    const deadlines = new Set<number>();
    const watched: Revocation = {
      ...revocation(),
      system: {
        ...system,
        removeConfined: async (path, limits) => {
          removed += 1;
          deadlines.add(limits.deadline);
          await new Promise((resolve) => setTimeout(resolve, 3));
          return system.removeConfined(path, limits);
        },
      },
    };
    expect(await removePosixIpc(watched)).toMatchObject({ outcome: "ok" });
    expect([removed, deadlines.size]).toEqual([5, 1]);
  });

  it("fails when others have filled the folder, so that not all names can be seen", async () => {
    plant(11, "dev/shm", 0);
    expect(await removePosixIpc(revocation(), { objects: 100, namesAtOnce: 10 })).toMatchObject({
      outcome: "failed",
      message: expect.stringContaining("/dev/shm has more than 10 names"),
    });
  });

  it("removes names that are not UTF-8, also in a folder of such a name, and nothing of others", async () => {
    const inShm = (...bytes: number[]): Buffer =>
      Buffer.concat([Buffer.from(`${host.path("dev/shm")}/`), Buffer.from(bytes)]);
    for (const folder of [inShm(0xfd), inShm(0xfc)]) mkdirSync(folder);
    chownSync(inShm(0xfd), UID, UID);
    for (const file of [inShm(0xff), inShm(0xfd, 0x2f, 0xff), inShm(0xfc, 0x2f, 0xff)]) {
      writeFileSync(file, "");
      chownSync(file, UID, UID);
    }
    writeFileSync(inShm(0xfe), "");
    expect(await removePosixIpc(revocation())).toMatchObject({ outcome: "ok", evidence: { found: 3, left: 0 } });
    const names = readdirSync(host.path("dev/shm"), { encoding: "buffer" }).map((name) => name.toString("latin1"));
    expect(names.sort()).toEqual(["shared", "\xfc", "\xfe"]);
    expect(readdirSync(inShm(0xfc))).toEqual([]);
  });
});
