import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  for (const folder of ["etc", "usr/bin"]) mkdirSync(join(root, folder), { recursive: true });
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
