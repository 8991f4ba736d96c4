import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quietAgentLog } from "../../test/fakes/hub/host-folder.ts";
import { systemAt } from "../system/system.ts";
import { allWays, rootAccessStep, waysToRoot } from "./root-access.ts";

const TENANT = { allocationId: "a", loginUser: "ada", uid: 20_000, home: "/home/ada", subUids: [] };
const PASSWD = "root:x:0:0:root:/root:/bin/bash\nada:x:20000:20000::/home/ada:/bin/bash\n";
const GROUP = "root:x:0:\nsudo:x:27:\ndocker:x:999:\nada:x:20000:\nusers:x:100:ada\n";
const ALLOWED =
  "Matching Defaults entries for ada on h:\n\nUser ada may run the following commands on h:\n    (ALL) ALL\n";
const DENIED = "User ada is not allowed to run sudo on h.\n";

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "muster-root-access-"));
  for (const folder of ["etc", "usr/bin", "proc"]) mkdirSync(join(root, folder), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function ways(group: string, sudo: string | null, passwd = PASSWD): Promise<string[]> {
  writeFileSync(join(root, "etc/passwd"), passwd);
  writeFileSync(join(root, "etc/group"), group);
  const tool = join(root, "usr/bin/sudo");
  rmSync(tool, { force: true });
  if (sudo !== null) {
    writeFileSync(join(root, "sudo.txt"), sudo);
    writeFileSync(tool, `#!/bin/sh\n[ "$*" = "-n -l -U ada" ] && cat "$MUSTER_ROOT/sudo.txt"\n`);
    chmodSync(tool, 0o755);
  }
  return waysToRoot(systemAt(root, quietAgentLog), TENANT);
}

describe("the ways of an account to the rights of root", () => {
  it.each([
    ["no group and no sudo", GROUP, null, []],
    ["no sudo rules", GROUP, DENIED, []],
    ["sudo rules", GROUP, ALLOWED, ["sudo rules"]],
    ["an answer of sudo that says nothing", GROUP, "sudo: a plugin failed\n", ["unreadable sudo rules"]],
    ["the group docker", GROUP.replace("docker:x:999:", "docker:x:999:bob,ada"), DENIED, ["group docker"]],
    ["a group with the gid of root", `${GROUP}toor:x:0:ada\n`, null, ["group toor"]],
    ["a member with a longer name", GROUP.replace("sudo:x:27:", "sudo:x:27:adam"), null, []],
  ])("are found for %s", async (_what, group, sudo, expected) => {
    expect(await ways(group, sudo)).toEqual(expected);
  });

  it("are the primary group too", async () => {
    expect(await ways(GROUP, null, PASSWD.replace("20000:20000", "20000:999"))).toEqual(["group docker"]);
  });

  describe("by a container that runs as the account", () => {
    const HOST = { user: "user:[1]", pid: "pid:[1]" };
    const INNER = { user: "user:[1]", pid: "pid:[2]" };
    const ROOTLESS = { user: "user:[2]", pid: "pid:[2]" };
    const ALL_RIGHTS = "000001ffffffffff";
    const OF_DOCKER = "00000000a80425fb";
    const process = (pid: number, uid: number, ns: typeof HOST, capabilities: string): void => {
      const folder = join(root, "proc", String(pid));
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(join(folder, "ns"), { recursive: true });
      const uids = Array(4).fill(uid).join("\t");
      writeFileSync(join(folder, "status"), `Uid:\t${uids}\nPPid:\t1\nCapBnd:\t${capabilities}\n`);
      writeFileSync(join(folder, "stat"), `${pid} (job) S 1 ${"1 ".repeat(40)}`);
      writeFileSync(join(folder, "cgroup"), "0::/system.slice/docker-0.scope\n");
      for (const [kind, target] of Object.entries(ns)) symlinkSync(target, join(folder, "ns", kind));
    };
    afterAll(() => {
      for (const pid of ["1", "42"]) rmSync(join(root, "proc", pid), { recursive: true, force: true });
    });

    it.each<[string, number, typeof HOST, string, string[]]>([
      ["a privileged container", 20_000, INNER, ALL_RIGHTS, ["privileged container"]],
      ["a container with the usual limits", 20_000, INNER, OF_DOCKER, []],
      ["a container of another user", 20_001, INNER, ALL_RIGHTS, []],
      ["a rootless container", 20_000, ROOTLESS, ALL_RIGHTS, []],
      ["a program outside containers", 20_000, HOST, ALL_RIGHTS, []],
    ])("is found only for %s", async (_what, uid, ns, capabilities, expected) => {
      process(1, 0, HOST, ALL_RIGHTS);
      process(42, uid, ns, capabilities);
      expect(await ways(GROUP, null)).toEqual(expected);
    });

    it("counts if the agent cannot read it", async () => {
      process(1, 0, HOST, ALL_RIGHTS);
      process(42, 20_000, INNER, ALL_RIGHTS);
      rmSync(join(root, "proc/42/ns/user"));
      mkdirSync(join(root, "proc/42/ns/user"));
      expect(await ways(GROUP, null)).toEqual(["unreadable container"]);
    });
  });

  describe("by the files of container engines", () => {
    const own = process.getgid?.() ?? 0;
    const MINE = `${GROUP}mine:x:${own}:ada\n`;
    // If the test runs in the group of root, its membership in the group is itself a way to root.
    const byGroup = own === 0 ? ["group mine"] : [];
    const ACL = "user::rw-\nuser:20000:rw-\ngroup::---\nmask::rw-\nother::---\n";
    const script = (name: string, text: string): void => {
      writeFileSync(join(root, "usr/bin", name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(root, "usr/bin", name), 0o755);
    };
    async function found(
      file: { path: string; mode: number; folder?: number; link?: string },
      marked: Readonly<Record<string, string>> = {},
      group = GROUP,
    ): Promise<string[]> {
      rmSync(join(root, "run"), { recursive: true, force: true });
      rmSync(join(root, "etc/kubernetes"), { recursive: true, force: true });
      const at = join(root, file.path);
      mkdirSync(dirname(at), { recursive: true });
      chmodSync(dirname(at), file.folder ?? 0o755);
      writeFileSync(at, "");
      chmodSync(at, file.mode);
      if (file.link !== undefined) symlinkSync("elsewhere", join(root, file.link));
      script("readlink", `echo ${file.path}`);
      const plus = Object.keys(marked).map((path) => `${path}) mark=+ ;;`);
      script(
        "ls",
        `shift 2; for path; do mark=; case $path in ${plus.join(" ")} esac; echo "srw-rw----$mark 1 0 0 0 Nov 23 12:00 $path"; done`,
      );
      const cases = Object.entries(marked).map(
        ([path, text]) => `${path}) printf '${text.replaceAll("\n", "\\n")}' ;;`,
      );
      script("getfacl", `case "$5" in ${cases.join(" ")} *) exit 1 ;; esac`);
      return ways(group, null);
    }
    const DOCKER = "/run/docker.sock";
    const CRIO = "/run/crio/crio.sock";

    it.each([
      ["a socket for everybody", { path: DOCKER, mode: 0o666 }, {}, GROUP, [`socket ${DOCKER}`]],
      ["a socket for its owner and group", { path: DOCKER, mode: 0o660 }, {}, GROUP, []],
      [
        "a socket for an unknown group of the account",
        { path: DOCKER, mode: 0o660 },
        {},
        MINE,
        [...byGroup, `socket ${DOCKER}`],
      ],
      ["an open socket in a closed folder", { path: CRIO, mode: 0o666, folder: 0o700 }, {}, GROUP, []],
      [
        "an open socket in a folder that lets in",
        { path: CRIO, mode: 0o666, folder: 0o711 },
        {},
        GROUP,
        [`socket ${CRIO}`],
      ],
      ["a socket that an ACL opens", { path: DOCKER, mode: 0o660 }, { [DOCKER]: ACL }, GROUP, [`socket ${DOCKER}`]],
      [
        "a socket behind the mask",
        { path: DOCKER, mode: 0o640 },
        { [DOCKER]: ACL.replace("mask::rw-", "mask::r--") },
        GROUP,
        [],
      ],
      ["an ACL of another user", { path: DOCKER, mode: 0o660 }, { [DOCKER]: ACL.replace("20000", "20001") }, GROUP, []],
      [
        "an ACL that nobody can read",
        { path: DOCKER, mode: 0o660 },
        { [DOCKER]: "odd" },
        GROUP,
        [`unreadable socket ${DOCKER}`],
      ],
      [
        "a symbolic link, which everybody may use, to a closed socket",
        { path: "/run/podman/podman.sock", mode: 0o660, link: DOCKER },
        {},
        GROUP,
        [],
      ],
      [
        "a symbolic link to an open socket",
        { path: "/run/podman/podman.sock", mode: 0o666, link: DOCKER },
        {},
        GROUP,
        [`socket ${DOCKER}`, "socket /run/podman/podman.sock"],
      ],
      [
        "the configuration of an administrator",
        { path: "/etc/kubernetes/admin.conf", mode: 0o644 },
        {},
        GROUP,
        ["file /etc/kubernetes/admin.conf"],
      ],
      ["a secret configuration", { path: "/etc/kubernetes/admin.conf", mode: 0o600 }, {}, GROUP, []],
    ])("are found for %s", async (_what, file, marked, group, expected) => {
      expect(await found(file, marked as Record<string, string>, group)).toEqual(expected);
    });

    it("are unreadable if a tool of the host is missing", async () => {
      await found({ path: DOCKER, mode: 0o600 });
      rmSync(join(root, "usr/bin/ls"));
      expect(await ways(GROUP, null)).toEqual([`unreadable socket ${DOCKER}`]);
      rmSync(join(root, "run"), { recursive: true });
    });
  });

  it("are none for an account that is gone, or that is another account of the same name", async () => {
    const group = GROUP.replace("docker:x:999:", "docker:x:999:ada");
    expect(await ways(group, ALLOWED, "root:x:0:0:root:/root:/bin/bash\n")).toEqual([]);
    expect(await ways(group, ALLOWED, PASSWD.replace("ada:x:20000", "ada:x:20001"))).toEqual([]);
  });

  it("stay known after the account is gone, and stay few", () => {
    expect(allWays(["group docker"], [])).toEqual(["group docker"]);
    expect(allWays(["group docker"], ["group docker", "sudo rules"])).toEqual(["group docker", "sudo rules"]);
    expect(
      allWays(
        [],
        Array.from({ length: 40 }, (_, at) => `group g${at}`),
      ),
    ).toHaveLength(16);
  });

  it("are told by a step that changes nothing", () => {
    expect(rootAccessStep(TENANT, ["group docker"], false)).toMatchObject({
      outcome: "ok",
      evidence: { ways: "group docker" },
    });
    expect(rootAccessStep(TENANT, [], true)).toMatchObject({ outcome: "planned", evidence: { ways: null } });
  });
});
