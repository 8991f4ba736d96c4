import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TaskReply } from "../../../shared/tasks/index.ts";
import {
  type GrantOrder,
  granted as grantedIn,
  sshKeyOf as keyOf,
  grantOrder as order,
} from "../../support/tenant-orders.ts";
import { TenantWorld } from "../../support/tenant-world.ts";

const lacks = TenantWorld.lacks();

describe.skipIf(lacks !== null)(`a grant on a real host${lacks === null ? "" : ` (skipped: ${lacks})`}`, () => {
  let world: TenantWorld;
  beforeAll(async () => {
    world = await TenantWorld.start();
  });
  afterAll(() => world?.end());

  const grant = (input: GrantOrder) => world.task("allocation.grant_user", input);
  const revoke = ({ allocation_id, login_user }: GrantOrder) =>
    world.task("allocation.revoke_user", { allocation_id, login_user, plan: false });
  const granted = (input: GrantOrder) => grantedIn(world, input);
  const outcomes = (reply: TaskReply<"allocation.grant_user">): string[] =>
    reply.ok ? reply.result.steps.map(({ step, outcome }) => `${step}: ${outcome}`) : [reply.error];
  /** Returns everything that the task `allocation.grant_user` makes on the host, without times and inode numbers. */
  const stateOf = ({ allocation_id, login_user }: GrantOrder): Promise<string> =>
    world.sh(`
      grep -h -e '^${login_user}:' /etc/passwd /etc/group /etc/shadow /etc/gshadow
      grep -h -c -e '^${login_user}:' /etc/subuid /etc/subgid || true
      find /home/${login_user} -printf '%P %y %m %u:%g %l\\n' | LC_ALL=C sort
      cat /home/${login_user}/.ssh/authorized_keys
      stat -c '%a %U:%G' /etc/sudoers.d/90-muster-allocation-${allocation_id} 2>/dev/null || echo no sudo
      ls -A /home /etc/sudoers.d | grep -e '^[.]' || true
      cat /var/lib/muster/agent/allocations/${allocation_id}.json`);

  it("makes an account with a home and keys of its own, and without a password, sudo rights or subordinate ids", async () => {
    const input = order({ ssh_keys: [keyOf("A"), keyOf("B")] });
    const reply = await grant(input);
    expect(outcomes(reply)).toEqual([
      "record: ok",
      "group: ok",
      "account: ok",
      "home: ok",
      "keys: ok",
      "sudo: skipped",
    ]);
    const uid = await granted(input);
    const name = input.login_user;
    const state = await stateOf(input);
    expect(state).toContain(
      `${name}:x:${uid}:${uid}:Muster allocation ${input.allocation_id}:/home/${name}:/bin/bash\n`,
    );
    expect(state).toMatch(new RegExp(`^${name}:x:${uid}:$`, "m"));
    expect(state).toMatch(new RegExp(`^${name}:[*]:`, "m"));
    expect(state).toContain(`\n d 700 ${name}:${name} \n`);
    expect(state).toContain(`\n.ssh d 700 ${name}:${name} \n.ssh/authorized_keys f 600 ${name}:${name} \n`);
    expect(state).toContain(`\n${keyOf("A")}\n${keyOf("B")}\nno sudo\n`);
    expect(state).toContain("\n0\n0\n d 700");
    expect(await world.sh(`id -nG ${name}`)).toBe(name);
    await world.sh(
      `setpriv --reuid ${uid} --regid ${uid} --clear-groups sh -c 'cat /home/${name}/.ssh/authorized_keys'`,
    );
    await expect(world.sh(`setpriv --reuid 4242 --regid 4242 --clear-groups ls /home/${name}`)).rejects.toThrow(
      "denied",
    );
  });

  it("gives sudo rights that visudo has checked, and takes them when a later order says so", async () => {
    const input = order({ root: true });
    const uid = await granted(input);
    const file = `/etc/sudoers.d/90-muster-allocation-${input.allocation_id}`;
    expect(await world.sh(`stat -c '%a %U:%G' ${file}; visudo --check --strict --file ${file}`)).toContain(
      "440 root:root",
    );
    // The shell command runs as the tenant, who has rights of root only by sudo.
    expect(await world.sh(`setpriv --reuid ${uid} --regid ${uid} --clear-groups sudo -n id -u`)).toBe("0");
    expect(await granted({ ...input, root: false })).toBe(uid);
    await expect(world.sh(`setpriv --reuid ${uid} --regid ${uid} --clear-groups sudo -n id -u`)).rejects.toThrow();
  });

  it("gives no rights when sudo cannot check them", async () => {
    const input = order({ root: true });
    const visudo = (await world.sh("command -v visudo")).trim();
    await world.sh(
      `printf '#!/bin/sh\\necho broken >&2; exit 1\\n' > $W/visudo; chmod 755 $W/visudo; mount --bind $W/visudo ${visudo}`,
    );
    try {
      expect(await grant(input)).toMatchObject({
        ok: false,
        error: "account_failed",
        message: expect.stringContaining("broken"),
      });
      expect(await world.sh(`ls -A /etc/sudoers.d | grep ${input.allocation_id} || true`)).toBe("");
    } finally {
      await world.sh(`umount ${visudo}`);
    }
    expect(outcomes(await grant(input)).at(-1)).toBe("sudo: ok");
  });

  it("changes nothing with plan, before and after the account is there", async () => {
    const input = order({ root: true });
    const before = await world.survey();
    const reply = await grant({ ...input, plan: true });
    expect(outcomes(reply).every((one) => one.endsWith(": planned"))).toBe(true);
    expect(reply).toMatchObject({ ok: true, result: { uid: null } });
    expect(await world.survey()).toBe(before);
    const uid = await granted(input);
    const made = await world.survey();
    expect(await grant({ ...input, plan: true })).toMatchObject({ ok: true, result: { uid } });
    expect(await world.survey()).toBe(made);
  });

  it("changes nothing on the second run", async () => {
    const input = order({ root: true });
    const uid = await granted(input);
    const state = await stateOf(input);
    expect(await granted(input)).toBe(uid);
    expect(await stateOf(input)).toBe(state);
  });

  it.each([
    ["account", "useradd --no-create-home NAME"],
    ["group", "groupadd NAME"],
  ])("refuses a name that another %s has, and changes nothing", async (_what, command) => {
    const input = order();
    await world.sh(command.replace("NAME", input.login_user));
    const before = await world.survey();
    expect(await grant(input)).toMatchObject({ ok: false, error: "account_exists" });
    expect(await grant({ ...input, plan: true })).toMatchObject({ ok: false, error: "account_exists" });
    expect(await world.survey()).toBe(before);
  });

  it("completes an account of which a killed useradd wrote only one file, in spite of its lock", async () => {
    const input = order();
    const uid = await granted(input);
    const record = `/var/lib/muster/agent/allocations/${input.allocation_id}.json`;
    await world.sh(`
      sed -i 's/"granted"/"granting"/' ${record}
      sed -i '/^${input.login_user}:/d' /etc/shadow
      rm -r /home/${input.login_user}
      printf '4194303\\0' > /etc/passwd.lock`);
    expect(await granted(input)).toBe(uid);
    expect(await stateOf(input)).toMatch(new RegExp(`^${input.login_user}:[*]:`, "m"));
  });

  it("refuses the name that another allocation has, and a second name for an allocation", async () => {
    const input = order();
    await granted(input);
    const before = await world.survey();
    expect(await grant({ ...order(), login_user: input.login_user })).toMatchObject({ error: "account_exists" });
    expect(await grant({ ...input, login_user: "mtst-other" })).toMatchObject({ error: "account_exists" });
    expect(await world.survey()).toBe(before);
  });

  it("refuses a home that somebody else left", async () => {
    const input = order();
    await world.sh(`mkdir /home/${input.login_user}; echo secret > /home/${input.login_user}/file`);
    expect(await grant(input)).toMatchObject({
      ok: false,
      error: "account_failed",
      message: expect.stringContaining("belongs to uid 0"),
    });
    expect(await world.sh(`stat -c %u /home/${input.login_user}/file`)).toBe("0");
  });

  it("never gives a uid twice, also after the account and its record are gone", async () => {
    const first = order();
    const uid = await granted(first);
    expect((await revoke(first)).ok).toBe(true);
    const second = await granted(order());
    expect(second).toBeGreaterThan(uid);
    await world.sh(`rm /var/lib/muster/agent/allocations/${first.allocation_id}.json`);
    expect(await granted(order())).toBeGreaterThan(second);
  });

  it("takes no uid below the one that the hub names", async () => {
    const lowest_uid = (await granted(order())) + 500;
    expect(await granted(order({ lowest_uid }))).toBe(lowest_uid);
    expect(await granted(order())).toBeGreaterThan(lowest_uid);
  });

  it("takes no uid that an account or a group of the host has", async () => {
    const uid = await granted(order());
    await world.sh(`useradd --no-create-home --uid ${uid + 1} mtst-host; groupadd --gid ${uid + 2} mtst-hostgroup`);
    expect(await granted(order())).toBeGreaterThan(uid + 2);
  });

  it("gives no uid while its file of used uids is damaged or used up", async () => {
    const file = "/var/lib/muster/agent/next-uid.json";
    const before = await world.sh(`cat ${file}`);
    for (const text of ["", "{", '{"next_uid":1}', '{"next_uid":60000}']) {
      await world.sh(`printf '%s' '${text}' > ${file}`);
      expect(await grant(order())).toMatchObject({ ok: false, error: "account_failed" });
    }
    await world.sh(`printf '%s' '${before}' > ${file}`);
    await granted(order());
  });

  it("does not make the account of a revoked allocation again", async () => {
    const input = order();
    await granted(input);
    expect((await revoke(input)).ok).toBe(true);
    const before = await world.survey();
    expect(await grant(input)).toMatchObject({ ok: false, error: "allocation_ended" });
    expect(await world.survey()).toBe(before);
  });

  describe("in a home that its user has changed", () => {
    it("follows no link in place of the keys' folder", async () => {
      const input = order();
      const uid = await granted(input);
      await world.sh(`cd /home/${input.login_user}; mv .ssh old; ln -s $W/outside .ssh; chown -h ${uid} .ssh`);
      expect(await grant({ ...input, ssh_keys: [keyOf("C")] })).toMatchObject({ ok: false, error: "keys_failed" });
      expect(await world.sh("ls -A $W/outside")).toBe("");
    });

    it("replaces a link in place of the keys' file", async () => {
      const input = order();
      const uid = await granted(input);
      await world.sh(
        `echo host > $W/outside/file; ln -sf $W/outside/file /home/${input.login_user}/.ssh/authorized_keys`,
      );
      expect(await granted({ ...input, ssh_keys: [keyOf("C")] })).toBe(uid);
      expect(
        await world.sh(`cat $W/outside/file; rm $W/outside/file; cat /home/${input.login_user}/.ssh/authorized_keys`),
      ).toBe(`host\n${keyOf("C")}`);
    });

    it("refuses a folder of keys that belongs to another user", async () => {
      const input = order();
      await granted(input);
      const folder = `/home/${input.login_user}/.ssh`;
      await world.sh(`chown -R root ${folder}; chmod 755 ${folder}`);
      expect(await grant({ ...input, ssh_keys: [keyOf("C")] })).toMatchObject({ ok: false, error: "keys_failed" });
      expect(await world.sh(`cat ${folder}/authorized_keys`)).toBe(keyOf("A"));
    });

    it("writes nothing outside while the user exchanges the folder again and again", async () => {
      const input = order();
      const uid = await granted(input);
      await world.start(`
import os, time
os.chdir("/home/${input.login_user}")
os.setgid(${uid}); os.setuid(${uid})
os.symlink("${world.folder}/outside", "link")
print("ready", flush=True)
while True:
  try:
    os.rename(".ssh", "kept"); os.rename("link", ".ssh"); os.rename(".ssh", "link"); os.rename("kept", ".ssh")
  except OSError:
    # The task has made the folder in the moment in which it was missing.
    os.rename(".ssh", "taken" + str(time.time())); os.rename("kept", ".ssh")
`);
      const seen = new Set<boolean>();
      for (let tries = 0; tries < 12; tries += 1) {
        const reply = await grant({ ...input, ssh_keys: [keyOf("D")] });
        if (!reply.ok) expect(reply).toMatchObject({ error: "keys_failed" });
        seen.add(reply.ok);
      }
      expect(seen.size).toBeGreaterThan(0);
      expect(await world.sh("ls -A $W/outside")).toBe("");
      expect((await revoke(input)).ok).toBe(true);
    });
  });

  it("ends in the same state when it was killed before any of its changes", { timeout: 300_000 }, async () => {
    const plain = order({ root: true });
    await granted(plain);
    const without = (text: string, { allocation_id, login_user }: GrantOrder): string =>
      text
        .replaceAll(allocation_id, "ID")
        .replaceAll(login_user, "NAME")
        .replace(/[0-9]{5}/g, "N");
    const wanted = without(await stateOf(plain), plain);
    let kills = 0;
    for (;;) {
      const input = order({ root: true });
      if (!(await world.killedTask("allocation.grant_user", input, kills + 1))) break;
      kills += 1;
      expect(await granted(input), `after a kill before change ${kills}`).toBeGreaterThan(0);
      expect(without(await stateOf(input), input), `after a kill before change ${kills}`).toBe(wanted);
    }
    expect(kills).toBeGreaterThan(8);
  });
});
