import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import type { HostProcess } from "../system/processes.ts";
import { endLinger, endSessions, isProcessOf, lockAccount } from "./logins.ts";
import type { Revocation, Tenant } from "./tenant.ts";

const tenant: Tenant = {
  allocationId: "5f0c1a52-0000-4000-8000-000000000009",
  loginUser: "ada",
  uid: 20_000,
  home: "/home/ada",
  subUids: [{ owner: "ada", first: 165_536, count: 10 }],
};
const other: HostProcess = {
  pid: 42,
  startTicks: "1",
  uids: [0, 0, 0, 0],
  loginUid: null,
  state: "S",
  threads: 1,
  comm: "sleep",
  parent: 1,
  terminal: 0,
  cgroups: ["0::/system.slice/ssh.service"],
};

describe("a process of a tenant", () => {
  it.each<[string, Partial<HostProcess>, boolean]>([
    ["of root", {}, false],
    ["with the tenant's real uid", { uids: [20_000, 0, 0, 0] }, true],
    ["with the tenant's effective uid", { uids: [0, 20_000, 0, 0] }, true],
    ["with the tenant's saved uid", { uids: [0, 0, 20_000, 0] }, true],
    ["with the tenant's file-system uid", { uids: [0, 0, 0, 20_000] }, true],
    ["of the uid after the tenant's", { uids: [20_001, 20_001, 20_001, 20_001] }, false],
    ["with the first subordinate uid", { uids: [165_536, 0, 0, 0] }, true],
    ["with the last subordinate uid", { uids: [165_545, 0, 0, 0] }, true],
    ["with the uid after the subordinate uids", { uids: [165_546, 0, 0, 0] }, false],
    ["of root that the tenant's login started", { loginUid: 20_000 }, true],
    ["of root that another login started", { loginUid: 1000 }, false],
    ["in the cgroup of the tenant's logins", { cgroups: ["0::/user.slice/user-20000.slice/session-1.scope"] }, true],
    ["in that cgroup itself", { cgroups: ["0::/user.slice/user-20000.slice"] }, true],
    ["in a cgroup with a longer number", { cgroups: ["0::/user.slice/user-200001.slice/session-1.scope"] }, false],
    [
      "in the tenant's cgroup of one old hierarchy",
      { cgroups: ["4:memory:/", "1:name=systemd:/user.slice/user-20000.slice/x"] },
      true,
    ],
  ])("%s", (_what, change, isTheirs) => {
    expect(isProcessOf(tenant)({ ...other, ...change })).toBe(isTheirs);
  });
});

describe("the logins of a tenant", () => {
  let host: HostFolder;
  beforeEach(() => {
    host = new HostFolder();
    host.write("run/systemd/system/.keep", "");
    host.write("etc/passwd", "ada:x:20000:20000::/home/ada:/bin/bash\n");
  });
  afterEach(() => host.remove());
  const revocation = (plan = false): Revocation => ({
    system: host.system,
    tenant,
    plan,
    signal: new AbortController().signal,
    alive: () => undefined,
  });

  it("end with the sessions and the service manager", async () => {
    host.write("run/systemd/users/20000", "");
    host.tool("loginctl");
    host.tool("systemctl");
    expect(await endSessions(revocation(true))).toMatchObject({ outcome: "planned" });
    expect(host.calls()).toEqual([]);
    expect(await endSessions(revocation())).toMatchObject({ outcome: "ok", evidence: { logged_in: true } });
    expect(host.calls()).toEqual(["loginctl terminate-user 20000", "systemctl stop user@20000.service"]);
  });

  it("are not ended when there are none", async () => {
    expect(await endSessions(revocation())).toMatchObject({ outcome: "ok", evidence: { logged_in: false } });
  });

  it("fail with what the tool says", async () => {
    host.write("run/systemd/users/20000", "");
    host.tool("loginctl", "echo no bus >&2; exit 1");
    host.tool("systemctl");
    expect(await endSessions(revocation())).toMatchObject({
      outcome: "failed",
      message: expect.stringContaining("no bus"),
    });
  });

  it("cannot begin again: the account is locked and expired", async () => {
    host.tool("usermod");
    expect(await lockAccount(revocation())).toMatchObject({ outcome: "ok" });
    expect(host.calls()).toEqual(["usermod --lock --expiredate 1 ada"]);
    host.tool("usermod", "echo locked file >&2; exit 10");
    await expect(lockAccount(revocation())).rejects.toThrow("usermod ended with status 10: locked file");
  });

  it("no longer linger, also if the login manager does not know the user", async () => {
    host.write("var/lib/systemd/linger/ada", "");
    host.tool("loginctl", "echo unknown user >&2; exit 1");
    expect(await endLinger(revocation())).toMatchObject({ outcome: "ok", evidence: { lingered: true } });
    expect(host.calls()).toEqual(["loginctl disable-linger ada"]);
    expect(host.has("var/lib/systemd/linger/ada")).toBe(false);
  });
});
