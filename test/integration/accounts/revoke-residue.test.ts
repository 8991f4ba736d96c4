import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TaskReply } from "../../../shared/tasks/index.ts";
import { fuseServer } from "../../support/fuse-server.ts";
import { type GrantOrder, granted, grantOrder } from "../../support/tenant-orders.ts";
import { TenantWorld } from "../../support/tenant-world.ts";

type Reply = TaskReply<"allocation.revoke_user">;
const lacks = TenantWorld.lacks();
const hasKeyctl = spawnSync("sh", ["-c", "command -v keyctl"]).status === 0;

describe.skipIf(lacks !== null)(
  `a revocation removes what the account left${lacks === null ? "" : ` (skipped: ${lacks})`}`,
  () => {
    let world: TenantWorld;
    beforeAll(async () => {
      world = await TenantWorld.start();
      // Some tests of traces need a file system with immutable files, or a kernel with POSIX message queues.
      canLock =
        (await world.sh(
          "touch $W/home/probe; chattr +i $W/home/probe && chattr -i $W/home/probe && echo yes || echo no; rm $W/home/probe",
        )) === "yes";
      hasQueues = (await world.sh("test -e $W/no-mqueue && echo no || echo yes")) === "yes";
    });
    afterAll(() => world?.end());
    let canLock = false;
    let hasQueues = false;

    const revoke = ({ allocation_id, login_user }: GrantOrder, plan = false) =>
      world.task("allocation.revoke_user", { allocation_id, login_user, plan });
    const stepOf = (reply: Reply, name: string) =>
      reply.ok ? reply.result.steps.find(({ step }) => step === name) : reply;
    const outcomesOf = (reply: Reply) =>
      reply.ok
        ? Object.fromEntries(reply.result.steps.map(({ step, outcome }) => [step, outcome]))
        : { error: reply.error };
    const traces = ({ login_user, allocation_id }: GrantOrder, uid: number): Promise<string> =>
      world.sh(`
      grep -h -e '^${login_user}:' -e '^${uid}:' /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/subuid /etc/subgid || true
      find /home /run /dev/shm /dev/mqueue /var/spool /var/mail /var/lib/systemd -uid ${uid} -o -name '${login_user}' 2>/dev/null || true
      ls -d /etc/sudoers.d/*${allocation_id}* /run/user/${uid} 2>/dev/null || true
      awk -v uid=${uid} '$0 ~ "[ \\t]" uid "[ \\t]"' /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg`);
    const as = (uid: number): string => `setpriv --reuid ${uid} --regid ${uid} --clear-groups`;

    /** Leaves the traces on the test host that a tenant can leave, with and without the rights of root. */
    async function litter(order: GrantOrder, uid: number): Promise<void> {
      const { login_user: name } = order;
      await world.sh(`
      echo '* * * * * true' > /var/spool/cron/crontabs/${name}; chown ${uid} /var/spool/cron/crontabs/${name}
      echo true > /var/spool/cron/atjobs/a0000101; chown ${uid} /var/spool/cron/atjobs/a0000101
      echo true > /var/spool/cron/atjobs/a0000202
      mkdir -p /var/lib/systemd/linger; touch /var/lib/systemd/linger/${name} /var/lib/systemd/linger/mtst-operator
      ${as(uid)} sh -c 'ipcmk --shmem 4096 >&2; ipcmk --queue >&2; ipcmk --semaphore 3 >&2; echo x > /dev/shm/segment; mkdir -p /dev/shm/folder/inner; ln -s / /dev/shm/folder/root'
      mkdir -m 1777 -p /dev/shm/shared; ${as(uid)} touch /dev/shm/shared/mine; touch /dev/shm/shared/theirs
      mkdir -p /run/user/${uid}/inner; chown -R ${uid} /run/user/${uid}; mount -t tmpfs -o uid=${uid} runtime /run/user/${uid}
      mkdir /run/user/${uid}/fuse; mount -t tmpfs fuse /run/user/${uid}/fuse; touch /run/user/${uid}/fuse/file
      echo mail > /var/mail/${name}; chown ${uid} /var/mail/${name}
      printf '%s\\n' '${name}:700000000:65536' '${uid}:800000000:65536' >> /etc/subuid
      printf '%s\\n' '${name}:700000000:65536' 'mtst-keeps:1:1' >> /etc/subgid
    `);
      if (hasQueues) await world.sh(`touch /dev/mqueue/theirs; ${as(uid)} touch /dev/mqueue/mine`);
    }

    it("and leaves no trace of it, and everything of others", async () => {
      if (!hasQueues) console.warn("NOT TESTED: no file system for POSIX message queues can be mounted here.");
      const order = grantOrder({ root: true });
      const uid = await granted(world, order);
      await litter(order, uid);
      expect(await traces(order, uid)).not.toBe("");
      const reply = await revoke(order);
      expect(reply).toMatchObject({ ok: true, result: { uid } });
      expect(Object.values(outcomesOf(reply)).filter((outcome) => outcome !== "ok")).toEqual(["skipped"]);
      expect(await traces(order, uid)).toBe("");
      expect(stepOf(reply, "sysv_ipc")).toMatchObject({ evidence: { segments: 1, queues: 1, semaphores: 1 } });
      expect(stepOf(reply, "posix_ipc")).toMatchObject({ evidence: { found: hasQueues ? 4 : 3 } });
      expect(stepOf(reply, "runtime_folder")).toMatchObject({ evidence: { mounts: 2 } });
      expect(stepOf(reply, "sub_ids")).toMatchObject({ evidence: { lines: 3 } });
      await world.sh(`
      test -e /var/spool/cron/atjobs/a0000202
      test -e /var/lib/systemd/linger/mtst-operator
      test -e /dev/shm/shared/theirs
      grep -q '^mtst-keeps:1:1$' /etc/subgid
      test -d /etc`);
      if (hasQueues) await world.sh("test -e /dev/mqueue/theirs");
    });

    it("and says how the account could get the rights of root, also after the account is gone", async () => {
      const order = grantOrder();
      await granted(world, order);
      await world.sh(`getent group docker || groupadd --system docker; usermod -aG docker ${order.login_user}`);
      const reply = await revoke(order);
      expect(reply).toMatchObject({ ok: true, result: { root_by: ["group docker"] } });
      expect(stepOf(reply, "root_access")).toMatchObject({ outcome: "ok", evidence: { ways: "group docker" } });
      expect(await revoke(order)).toMatchObject({ ok: true, result: { root_by: ["group docker"] } });
      const plain = grantOrder();
      await granted(world, plain);
      expect(await revoke(plain)).toMatchObject({ ok: true, result: { root_by: [] } });
    });

    it("and tells the same uid again, with nothing left to do", async () => {
      const order = grantOrder();
      const uid = await granted(world, order);
      expect(await revoke(order)).toMatchObject({ ok: true, result: { uid } });
      const before = await world.survey();
      expect(await revoke(order)).toMatchObject({ ok: true, result: { uid } });
      expect(await world.survey()).toBe(before);
    });

    it("and with plan changes nothing, and says what it would do", async () => {
      const order = grantOrder({ root: true });
      const uid = await granted(world, order);
      await litter(order, uid);
      await world.start(`import os, time\nos.setuid(${uid})\nprint("ready", flush=True)\ntime.sleep(1000)`);
      const before = await world.survey();
      const reply = await revoke(order, true);
      expect(new Set(Object.values(outcomesOf(reply)))).toEqual(new Set(["planned"]));
      expect(stepOf(reply, "processes")).toMatchObject({ message: expect.stringContaining("python3") });
      expect(await world.survey()).toBe(before);
      expect((await revoke(order)).ok).toBe(true);
    });

    it("and does nothing on a host without a record and without the account", async () => {
      const before = await world.survey();
      expect(await revoke(grantOrder())).toMatchObject({ ok: true, result: { uid: null } });
      expect(await world.survey()).toBe(before);
    });

    it.each<[string, (order: GrantOrder, uid: number) => string, Partial<GrantOrder>]>([
      [
        "an account without a record",
        (order) => `rm /var/lib/muster/agent/allocations/${order.allocation_id}.json`,
        {},
      ],
      ["an account with another uid", ({ login_user }) => `usermod --uid 4243 ${login_user}`, {}],
      ["a uid that another account has too", (_order, uid) => `useradd -o --uid ${uid} --no-create-home mtst-twin`, {}],
      ["the account of another name", () => "true", { login_user: "mtst-name" }],
    ])("but not %s", async (_what, script, change) => {
      const order = grantOrder();
      const uid = await granted(world, order);
      await world.sh(script(order, uid));
      const before = await world.survey();
      expect(await revoke({ ...order, ...change })).toMatchObject({ ok: false, error: "not_our_account" });
      expect(await world.survey()).toBe(before);
      await world.sh("userdel mtst-twin 2>/dev/null || true");
    });

    it("and clears the tenant's keyring, or says that no tool can", async () => {
      const order = grantOrder();
      const uid = await granted(world, order);
      const addKey = process.arch === "arm64" ? 217 : 248;
      await world.start(`
import os, ctypes
os.setgid(${uid}); os.setuid(${uid})
libc = ctypes.CDLL(None, use_errno=True)
key = libc.syscall(${addKey}, b"user", b"mtst", b"secret", 6, -4)
open("/dev/shm/key", "w").write(str(key))
print("ready", flush=True)`);
      const key = await world.sh("cat /dev/shm/key");
      if (Number(key) <= 0) console.warn("NOT TESTED: this machine lets no process add a key to the kernel.");
      const step = stepOf(await revoke(order), "keyrings");
      // The Linux kernel may itself drop a user's keyring when the user's last process ends.
      expect(step).toMatchObject(
        hasKeyctl ? { outcome: "ok" } : { outcome: expect.stringMatching(/^(unsupported|ok)$/) },
      );
      if (hasKeyctl) expect(await world.sh("cat /proc/keys")).not.toContain("mtst");
    });

    describe("in the home", () => {
      const homeOf = ({ login_user }: GrantOrder): string => `/home/${login_user}`;

      it("links are not followed, and odd names, deep folders and closed folders go", async () => {
        const order = grantOrder();
        const uid = await granted(world, order);
        await world.sh(`mkdir -p $W/outside/folder; echo host > $W/outside/folder/file; chmod 777 $W/outside/folder`);
        await world.start(`
import os
os.setgid(${uid}); os.setuid(${uid})
os.chdir("${homeOf(order)}")
os.symlink("${world.folder}/outside/folder", "link"); os.symlink("/etc/passwd", "passwd")
for name in (b"\\xff\\xfe", b"line\\nend", b"-rf", b" ", b"*", "\\u202e".encode()): os.mkdir(name); open(os.path.join(name, b"\\x80"), "w")
os.mkfifo("pipe"); os.mkdir("closed"); open("closed/file", "w"); os.chmod("closed", 0)
os.mkdir("many")
for number in range(3000): open(f"many/{number}", "w")
for depth in range(1500): os.mkdir("d"); os.chdir("d")
open("bottom", "w")
print("ready", flush=True)`);
        const reply = await revoke(order);
        expect(stepOf(reply, "home")).toMatchObject({ outcome: "ok", evidence: { left: 0, mounts: 0 } });
        expect(
          await world.sh(`cat $W/outside/folder/file; ls -A /home | grep -x ${order.login_user} || echo gone`),
        ).toBe("host\ngone");
      });

      it("immutable and append-only files and folders go", async (context) => {
        if (!canLock) context.skip("chattr is forbidden here, or the file system of the temporary folder has no flags");
        const order = grantOrder();
        await granted(world, order);
        await world.sh(`cd ${homeOf(order)}; mkdir -p a/b/c many; touch a/file a/b/c/file log .ssh/x
        for number in $(seq 1200); do : > many/$number; done; chattr +i many/*
        mkdir $(printf 'bad\\377'); : > $(printf 'bad\\377')/$(printf '\\376'); chattr +i $(printf 'bad\\377')/* ; chattr +i $(printf 'bad\\377')
        chattr +i a/file a/b/c/file a/b/c a/b a .ssh/authorized_keys .ssh; chattr +a log; chattr +i .`);
        const step = stepOf(await revoke(order), "home");
        expect(step).toMatchObject({ outcome: "ok", evidence: { left: 0 } });
        expect(await world.sh(`test -e ${homeOf(order)} && echo there || echo gone`)).toBe("gone");
      });

      it.each([
        ["another file system", "mount -t tmpfs inner TARGET; mkdir TARGET/x; echo kept > TARGET/x/file", "tmpfs"],
        [
          "a folder of the same file system",
          "mkdir -p $W/home/.kept/x; echo kept > $W/home/.kept/x/file; mount --bind $W/home/.kept TARGET",
          "ext4|xfs|btrfs|overlay|tmpfs",
        ],
      ])("a mount of %s stays and is named, and everything beside it goes", async (_what, mount, type) => {
        const order = grantOrder();
        const uid = await granted(world, order);
        const target = `${homeOf(order)}/a/deep\\ folder`;
        await world.sh(
          `mkdir -p ${target} ${homeOf(order)}/b; touch ${homeOf(order)}/a/file ${homeOf(order)}/b/file; ${mount.replaceAll("TARGET", target)}`,
        );
        const reply = await revoke(order);
        const step = stepOf(reply, "home");
        expect(step).toMatchObject({
          outcome: "failed",
          evidence: { mounts: 1 },
          message: expect.stringContaining("a/deep folder"),
        });
        expect(step && "evidence" in step ? step.message : "").toMatch(new RegExp(`type (${type}) is mounted`));
        expect(await world.sh(`cat ${target}/x/file; ls ${homeOf(order)} ${homeOf(order)}/a`)).toBe(
          `kept\n${homeOf(order)}:\na\n\n${homeOf(order)}/a:\ndeep folder`,
        );
        expect(await world.sh(`getent passwd ${order.login_user} || echo none`)).toBe("none");
        await world.sh(`umount ${target}; test ! -e $W/home/.kept || rm -r $W/home/.kept`);
        const again = await revoke(order);
        expect(again).toMatchObject({ ok: true, result: { uid } });
        expect(stepOf(again, "home")).toMatchObject({ outcome: "ok" });
        expect(await traces(order, uid)).toBe("");
      });

      it("FUSE file systems of the tenant go, and a FUSE file system of the site stays", async (context) => {
        if ((await world.sh("test -e /dev/fuse && echo yes || echo no")) === "no")
          context.skip("there is no /dev/fuse");
        const order = grantOrder();
        const uid = await granted(world, order);
        const [home, runtime] = [homeOf(order), `/run/user/${uid}`];
        const folders = [`${home}/own`, `${home}/own too`, runtime];
        await world.sh(`mkdir -p '${folders.join("' '")}' ${home}/site; chown -R ${uid} ${home} ${runtime}`);
        const program = 'print("ready", flush=True)\ntime.sleep(1000)';
        for (const folder of folders) await world.start(fuseServer({ folder, uid, program }));
        await world.start(fuseServer({ folder: `${home}/site`, uid: 0, program }));
        const reply = await revoke(order);
        expect(stepOf(reply, "processes")).toMatchObject({ outcome: "ok", evidence: { fuse_mounts: 3 } });
        expect(stepOf(reply, "runtime_folder")).toMatchObject({ outcome: "ok" });
        expect(stepOf(reply, "home")).toMatchObject({
          outcome: "failed",
          evidence: { mounts: 1 },
          message: expect.stringMatching(/site: a file system of type fuse.mtst is mounted/),
        });
        expect(await world.sh(`ls -A ${home}; grep -c fuse.mtst /proc/self/mountinfo`)).toBe("site\n1");
        await world.sh(`umount --lazy ${home}/site`);
        expect(stepOf(await revoke(order), "home")).toMatchObject({ outcome: "ok" });
        expect(await traces(order, uid)).toBe("");
      });

      it("a home that is itself a mount stays and is named", async () => {
        const order = grantOrder();
        await granted(world, order);
        await world.sh(`mount -t tmpfs inner ${homeOf(order)}; echo kept > ${homeOf(order)}/file`);
        expect(stepOf(await revoke(order), "home")).toMatchObject({
          outcome: "failed",
          message: expect.stringContaining("tmpfs"),
        });
        expect(await world.sh(`cat ${homeOf(order)}/file; umount ${homeOf(order)}`)).toBe("kept");
        expect(stepOf(await revoke(order), "home")).toMatchObject({ outcome: "ok" });
      });
    });

    it("also after a grant that was killed before any of its changes", { timeout: 600_000 }, async () => {
      for (let kills = 0; ; kills += 1) {
        const order = grantOrder({ root: true });
        if (!(await world.killedTask("allocation.grant_user", order, kills + 1))) {
          expect(kills).toBeGreaterThan(8);
          break;
        }
        const reply = await revoke(order);
        expect(reply, `after a kill before change ${kills + 1}`).toMatchObject({ ok: true });
        const uid = reply.ok ? reply.result.uid : null;
        if (uid !== null) expect(await traces(order, uid), `after a kill before change ${kills + 1}`).toBe("");
        expect(await world.sh("ls -A /home /etc/sudoers.d | grep -e '^[.]' || true")).toBe("");
      }
    });

    it("and ends in the same state when it was killed before any of its changes", { timeout: 600_000 }, async () => {
      let kills = 0;
      for (;;) {
        const order = grantOrder({ root: true });
        const uid = await granted(world, order);
        await litter(order, uid);
        const input = { allocation_id: order.allocation_id, login_user: order.login_user, plan: false };
        const wasKilled = await world.killedTask("allocation.revoke_user", input, kills + 1);
        if (wasKilled) {
          kills += 1;
          expect(await revoke(order), `after a kill before change ${kills}`).toMatchObject({
            ok: true,
            result: { uid },
          });
        }
        expect(await traces(order, uid), `after a kill before change ${kills}`).toBe("");
        if (!wasKilled) break;
      }
      expect(kills).toBeGreaterThan(15);
    });
  },
);
