import { describe, expect, it } from "vitest";
import { type EntryFacts, keepAtTop, keepBelow, needsLook } from "./kept.ts";

const BOOT = "0123456789abcdef0123456789abcdef";
const PRIVATE = `systemd-private-${BOOT}-chrony.service-abc`;
const entry = (name: string, more: Partial<EntryFacts> = {}): EntryFacts => ({
  name,
  kind: "folder",
  uid: 0,
  mode: 0o40700,
  isListening: false,
  ...more,
});
const socket = (isListening: boolean, uid = 0): EntryFacts => entry("s", { kind: "socket", uid, isListening });

describe("what the emptying of a folder keeps at the top", () => {
  it.each<[string, EntryFacts, "temporary" | "scratch", string]>([
    ["the private folder of a service of this boot", entry(PRIVATE), "temporary", "keep"],
    ["a private folder of an earlier boot", entry("systemd-private-00-a.service-b"), "temporary", "remove"],
    ["a private folder that others may enter", entry(PRIVATE, { mode: 0o40777 }), "temporary", "remove"],
    ["a tenant's folder with such a name", entry(PRIVATE, { uid: 1000 }), "temporary", "remove"],
    ["a file with such a name", entry(PRIVATE, { kind: "other" }), "temporary", "remove"],
    ["such a folder in a scratch folder", entry(PRIVATE), "scratch", "remove"],
    ["the folder of X sockets", entry(".X11-unix", { mode: 0o41777 }), "temporary", "keep_folder"],
    ["a tenant's folder of X sockets", entry(".X11-unix", { uid: 1000 }), "temporary", "remove"],
    ["the private folders of snaps", entry("snap-private-tmp"), "temporary", "keep_folders"],
    [
      "an open folder with the name of the snaps' folder",
      entry("snap-private-tmp", { mode: 0o40755 }),
      "temporary",
      "remove",
    ],
    ["lost+found of a data disk", entry("lost+found"), "scratch", "keep_folder"],
    ["a tenant's lost+found", entry("lost+found", { uid: 1000 }), "scratch", "remove"],
    ["a socket at which a service listens", socket(true), "temporary", "keep"],
    ["a socket without a listener", socket(false), "temporary", "remove"],
    ["a tenant's socket with a listener", socket(true, 1000), "temporary", "remove"],
    ["a listening socket in a scratch folder", socket(true), "scratch", "remove"],
    ["any other folder of root", entry("build"), "temporary", "remove"],
  ])("%s", (_what, facts, use, keep) => {
    expect(keepAtTop(use, facts, BOOT)).toBe(keep);
  });
});

describe("what is kept below a kept folder", () => {
  it("is a listening socket of root in a folder of sockets, and folders of root below the snaps' folder", () => {
    expect(keepBelow("keep_folder", socket(true))).toBe("keep");
    expect(keepBelow("keep_folder", socket(true, 1000))).toBe("remove");
    expect(keepBelow("keep_folder", entry("deep"))).toBe("remove");
    expect(keepBelow("keep_folders", entry("snap.lxd"))).toBe("keep_folders");
    expect(keepBelow("keep_folders", entry("snap.lxd", { uid: 1000 }))).toBe("remove");
    expect(keepBelow("keep_folders", entry("a file", { kind: "other" }))).toBe("remove");
  });
});

describe("whether an entry needs a look at its owner", () => {
  it("says yes for each entry that one of the two functions may keep", () => {
    const names = [PRIVATE, ".X11-unix", ".ICE-unix", "snap-private-tmp", "lost+found", "s", "build"];
    for (const name of names)
      for (const kind of ["folder", "socket", "other"] as const)
        for (const above of ["keep_folder", "keep_folders"] as const)
          for (const isTop of [true, false]) {
            const facts = entry(name, { kind, isListening: true });
            const keep = isTop ? keepAtTop("temporary", facts, BOOT) : keepBelow(above, facts);
            if (keep !== "remove") expect([name, kind, above, needsLook(above, isTop, name, kind)]).toContain(true);
          }
    expect(needsLook("keep_folder", true, "build", "folder")).toBe(false);
    expect(needsLook("keep_folder", true, "build", "other")).toBe(false);
  });
});
