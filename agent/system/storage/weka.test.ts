import { symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { leaveWeka, wekaMounts } from "./leave-weka.ts";
import { homesIn, removeWekaTokens } from "./weka-tokens.ts";

const ROOT_MOUNT = "21 1 8:1 / / rw - ext4 /dev/sda1 rw";
const WEKA = "30 21 0:50 / /mnt/weka rw - wekafs weka/fs rw";
const INSIDE = "31 30 0:51 / /mnt/weka/inner rw - tmpfs none rw";
/** The stand-in for `umount` removes the mount point's line from the host's list of mounts. */
const UMOUNT = `grep -v " $2 " "$MUSTER_ROOT/proc/self/mountinfo" > "$MUSTER_ROOT/new"; mv "$MUSTER_ROOT/new" "$MUSTER_ROOT/proc/self/mountinfo"`;

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
  host.write("proc/self/mountinfo", `${ROOT_MOUNT}\n${WEKA}\n${INSIDE}\n`);
  host.write("proc/wekafs/interface", "");
  host.write("proc/sys/vm/drop_caches", "0\n");
  host.tool("umount", UMOUNT);
});
afterEach(() => host.remove());

const leave = (withinMs = 60_000) =>
  leaveWeka(
    {
      root: host.root,
      signal: new AbortController().signal,
      throwIfStopped: () => undefined,
      progress: () => undefined,
    },
    withinMs,
  );

describe("leaving Weka", () => {
  it("unmounts what is mounted in Weka first, then Weka, and drops the caches", async () => {
    expect(await leave()).toMatchObject({
      outcome: "ok",
      evidence: { mounts: 2, still_mounted: 0, caches_dropped: true },
    });
    expect(host.calls()).toEqual(["umount -- /mnt/weka/inner", "umount -- /mnt/weka"]);
    expect(host.read("proc/sys/vm/drop_caches")).toBe("3\n");
    expect(host.read("proc/self/mountinfo")).toBe(`${ROOT_MOUNT}\n`);
  });

  it("calls nothing while the client does not run, because an unmount would never return", async () => {
    host.remove();
    host = new HostFolder();
    host.write("proc/self/mountinfo", `${WEKA}\n`);
    host.tool("umount", UMOUNT);
    expect(await leave()).toMatchObject({ outcome: "failed", evidence: { client_running: false } });
    expect(host.calls()).toEqual([]);
  });

  it("fails when umount succeeds but the mount stays in the list", async () => {
    host.tool("umount");
    expect(await leave(1)).toMatchObject({ outcome: "failed", message: expect.stringContaining("/mnt/weka") });
  });

  it("fails when umount fails, and when a container still has Weka mounted", async () => {
    host.tool("umount", "echo busy >&2; exit 32");
    expect(await leave(1)).toMatchObject({ outcome: "failed", message: expect.stringContaining("busy") });
    host.tool("umount", UMOUNT);
    host.write("proc/4711/mountinfo", `${WEKA}\n`);
    expect(await leave()).toMatchObject({ outcome: "failed", message: expect.stringContaining("4711") });
  });

  it("removes the client's containers, and no container of another type", async () => {
    const container = (type: string) => JSON.stringify([{ name: "client", type, running: true }]);
    host.write("containers", container("client"));
    host.tool(
      "weka",
      `case "$2" in ps) cat "$MUSTER_ROOT/containers" ;; rm) echo "[]" > "$MUSTER_ROOT/containers" ;; esac`,
    );
    expect(await leave()).toMatchObject({ outcome: "ok", evidence: { containers_removed: 1 } });
    expect(host.calls().slice(2)).toEqual([
      "weka local ps -J",
      "weka local stop client",
      "weka local rm client -f",
      "weka local ps -J",
    ]);
    host.write("containers", container("drives"));
    expect(await leave()).toMatchObject({ outcome: "failed" });
    expect(host.calls().at(-1)).toBe("weka local ps -J");
    host.write("containers", "not JSON");
    expect(await leave()).toMatchObject({ outcome: "failed" });
  });

  it("finds Weka's mounts and the mounts in them, innermost first", () => {
    const mount = (path: string, type: string) => ({
      id: "1",
      parent: "0",
      device: "0:1",
      from: "/",
      path,
      type,
      source: "",
      options: [],
      isReadOnly: false,
    });
    const mounts = [
      mount("/", "ext4"),
      mount("/w", "wekafs"),
      mount("/w2", "ext4"),
      mount("/w/a", "ext4"),
      mount("/w/a/b", "wekafs"),
    ];
    expect(wekaMounts(mounts).map(({ path }) => path)).toEqual(["/w/a/b", "/w/a", "/w"]);
  });
});

describe("removing the tokens of Weka", () => {
  it("removes the token of each home, and follows no symbolic link of an account", () => {
    host.write("etc/passwd", "root:x:0:0::/root:/bin/sh\nada:x:1:1::/home/ada:/bin/sh\neve:x:2:2::/home/eve:/bin/sh\n");
    host.write("root/.weka/auth-token.json", "{}");
    host.write("home/ada/.weka/auth-token.json", "{}");
    host.write("home/ada/.weka/other", "");
    expect(removeWekaTokens(host.root)).toMatchObject({ outcome: "ok", evidence: { homes: 3, tokens_removed: 2 } });
    expect([host.has("root/.weka/auth-token.json"), host.has("home/ada/.weka/other")]).toEqual([false, true]);
    host.write("srv/victim/auth-token.json", "{}");
    host.write("home/eve/file", "");
    symlinkSync("/srv/victim", host.path("home/eve/.weka"));
    expect(removeWekaTokens(host.root)).toMatchObject({
      outcome: "failed",
      message: expect.stringContaining("/home/eve"),
    });
    expect(host.has("srv/victim/auth-token.json")).toBe(true);
  });

  it("takes homes from the list of accounts, each once, and never the root folder", () => {
    expect(homesIn("a:x:1:1::/home/a:\nb:x:2:2::/home/a:\nc:x:3:3::/:\nd:x:4:4::/x/../etc:\ne:x\n")).toEqual([
      "/home/a",
    ]);
  });

  it("fails without a list of accounts", () => {
    expect(() => removeWekaTokens(host.root)).toThrow(/passwd/);
  });
});
