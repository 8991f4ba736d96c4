import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { granted, grantOrder } from "../../support/tenant-orders.ts";
import { TenantWorld } from "../../support/tenant-world.ts";

const lacks = TenantWorld.lacks();

describe.skipIf(lacks !== null)(`closing terminals${lacks === null ? "" : ` (skipped: ${lacks})`}`, () => {
  let world: TenantWorld;
  beforeAll(async () => {
    world = await TenantWorld.start();
  });
  afterAll(() => world?.end());

  const onTerminal = (uid: number, ignored = "()"): Promise<void> =>
    world.start(`
import os, pty, signal, time
pid, terminal = pty.fork()
if pid == 0:
  [signal.signal(s, signal.SIG_IGN) for s in ${ignored}]
  os.setuid(${uid}); os.write(1, b"up"); time.sleep(1000)
os.read(terminal, 2); print("ready", flush=True)
while True: time.sleep(1000)`);
  /** True if a process runs under the uid. A process in state Z does not count as running, because it has already ended. */
  const running = async (uid: number): Promise<boolean> =>
    (await world.sh(`for status in /proc/[0-9]*/status; do
      grep -q -E '^Uid:[[:space:]]+${uid}[[:space:]]' $status 2>/dev/null && grep -E '^State:[[:space:]]+[^Z]' $status
    done || true`)) !== "";
  const close = (login_user: string | null, plan = false) => world.task("terminal.close", { login_user, plan });

  it("ends one user's terminals and leaves those of others and processes without a terminal", async () => {
    const [one, other] = [grantOrder(), grantOrder()];
    const [uid, otherUid] = [await granted(world, one), await granted(world, other)];
    await onTerminal(uid);
    await onTerminal(uid, "(1, 15)");
    await onTerminal(otherUid);
    await world.start(`import os, time\nos.setsid(); os.setuid(${uid})\nprint("ready", flush=True)\ntime.sleep(1000)`);
    const before = await world.survey();
    expect(await close(one.login_user, true)).toMatchObject({ ok: true, result: { sessions_closed: 0 } });
    expect(await world.survey()).toBe(before);
    expect(await close(one.login_user)).toMatchObject({
      ok: true,
      result: {
        sessions_closed: 2,
        steps: [
          { step: "sessions", outcome: "skipped" },
          { step: "terminals", outcome: "ok", evidence: { terminals: 2, processes: 2 } },
        ],
      },
    });
    expect(await running(otherUid)).toBe(true);
    expect(await running(uid)).toBe(true);
    expect(await close(one.login_user)).toMatchObject({ ok: true, result: { sessions_closed: 0 } });
  });

  it("ends the terminals of all human users, but not those of root and of services", async () => {
    const uid = await granted(world, grantOrder());
    await onTerminal(uid);
    await onTerminal(0);
    await onTerminal(999);
    await onTerminal(65_534);
    expect(await close(null)).toMatchObject({ ok: true });
    expect(await running(uid)).toBe(false);
    expect(await running(999)).toBe(true);
    expect(await running(65_534)).toBe(true);
  });

  describe("at a drain", () => {
    const drain = (force: boolean, deadline_seconds: number) =>
      world.task("node.drain", { reason: "repair", deadline_seconds, force });
    beforeAll(async () => {
      // No login manager runs on the test host. The test replaces `loginctl` by a script that answers like a login manager without sessions.
      await world.sh(
        `printf '#!/bin/sh\nexit 0\n' > $W/loginctl; chmod 755 $W/loginctl; mount --bind $W/loginctl $(command -v loginctl)`,
      );
    });

    it("with force ends terminals that the login manager does not list, after the deadline", async () => {
      const order = grantOrder();
      const uid = await granted(world, order);
      await onTerminal(uid, "(1, 15)");
      await onTerminal(999);
      const began = Date.now();
      expect(await drain(true, 3)).toEqual({
        ok: true,
        result: { drained: true, sessions_closed: 1, remaining_users: [] },
      });
      expect(Date.now() - began).toBeGreaterThanOrEqual(3_000);
      expect(await running(uid)).toBe(false);
      expect(await running(999)).toBe(true);
    });

    it("without force leaves them", async () => {
      const uid = await granted(world, grantOrder());
      await onTerminal(uid);
      expect(await drain(false, 0)).toMatchObject({ ok: true, result: { sessions_closed: 0 } });
      expect(await running(uid)).toBe(true);
    });
  });

  it("has nothing to do for a user without an account", async () => {
    expect(await close("mtst-nobody")).toMatchObject({ ok: true, result: { sessions_closed: 0 } });
  });
});
