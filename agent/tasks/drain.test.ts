import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { until } from "../../test/support/until.ts";
import { TaskCancelled } from "./cancelled.ts";
import { drain } from "./drain.ts";

const QUICK = { lookEveryMs: 5, progressEveryMs: 60_000, endWithinMs: 5_000 };
const NOLOGIN = "etc/nologin";
const MARK = "var/lib/muster/agent/drain.json";
/**
 * A simulated `loginctl`, whose sessions are the lines of the file `sessions`. The simulated `loginctl terminate-session` removes one line of the
 * file `sessions`.
 */
const LOGINCTL = `case $1 in
list-sessions) cat "$MUSTER_ROOT/sessions" ;;
terminate-session) grep -v "^ *$2 " "$MUSTER_ROOT/sessions" > "$MUSTER_ROOT/sessions.new"; mv "$MUSTER_ROOT/sessions.new" "$MUSTER_ROOT/sessions" ;;
esac`;
const ROOT = "     1    0 root    seat0 tty1\n";
const ANN = "    c2 1001 ann     -     pts/0 active no -\n";
const BOB = "    33 1002 bob     -     pts/1\n";
const GREETER = "    44  117 gdm     seat0 -\n";

let host: HostFolder;
let users: string[][];
let abort: AbortController;
beforeEach(() => {
  host = new HostFolder();
  host.tool("loginctl", LOGINCTL);
  host.write("sessions", ROOT + GREETER);
  users = [];
  abort = new AbortController();
});
afterEach(() => host.remove());

const taskId = newTaskId();
const start = (input: { deadline_seconds: number; force: boolean }) =>
  drain(host.system, QUICK)(
    { reason: "repair", ...input },
    { taskId, signal: abort.signal, progress: (said) => void users.push(said.remaining_users) },
  );

describe("drain", () => {
  it("marks the host, prevents new logins, and ends when only root and system users are logged in", async () => {
    expect(await start({ deadline_seconds: 60, force: false })).toEqual({
      ok: true,
      result: { drained: true, sessions_closed: 0, remaining_users: [] },
    });
    expect(host.read(NOLOGIN)).toContain("repair");
    expect(JSON.parse(host.read(MARK))).toMatchObject({ task_id: taskId, reason: "repair" });
  });

  it("waits for users to log out and reports the remaining ones when they change", async () => {
    host.write("sessions", ROOT + ANN + BOB);
    const reply = start({ deadline_seconds: 600, force: false });
    await until("two users", () => (users.length === 1 ? true : undefined));
    host.write("sessions", ROOT + BOB);
    await until("one user", () => (users.length === 2 ? true : undefined));
    host.write("sessions", ROOT);
    expect(await reply).toMatchObject({ ok: true });
    expect(users).toEqual([["ann", "bob"], ["bob"]]);
  });

  it("names the remaining users at the deadline, and ends no session without force", async () => {
    host.write("sessions", ROOT + ANN);
    expect(await start({ deadline_seconds: 0, force: false })).toMatchObject({
      ok: false,
      error: "deadline_passed",
      message: expect.stringContaining("ann"),
    });
    expect(host.read("sessions")).toContain("ann");
  });

  it("with force, ends the users' sessions and no others", async () => {
    host.write("sessions", ROOT + ANN + BOB + GREETER);
    expect(await start({ deadline_seconds: 0, force: true })).toEqual({
      ok: true,
      result: { drained: true, sessions_closed: 2, remaining_users: [] },
    });
    expect(host.read("sessions")).toBe(ROOT + GREETER);
  });

  describe("as a plan", () => {
    const plan = async (input: { deadline_seconds: number; force: boolean }) => {
      const run = { taskId, signal: abort.signal, progress: () => expect.fail("a plan waits for nobody") };
      const reply = await drain(host.system, QUICK)({ reason: "repair", plan: true, ...input }, run);
      if (!reply.ok) throw new Error(reply.message);
      const steps = Object.fromEntries((reply.result.steps ?? []).map((step) => [step.step, step]));
      return { ...reply.result, steps };
    };

    it("names the users, sessions and services that a forced drain would end, and ends none", async () => {
      host.write("sessions", ROOT + ANN + BOB + GREETER);
      host.write("var/lib/systemd/linger/bob", "");
      const { remaining_users, drained, steps } = await plan({ deadline_seconds: 60, force: true });
      expect({ remaining_users, drained }).toEqual({ remaining_users: ["ann", "bob"], drained: false });
      expect(steps).toMatchObject({
        logins: { outcome: "planned", evidence: { closed_by: null } },
        sessions: { evidence: { sessions: 2, users: 2, needs_force: true, would_end: "c2 33" } },
        services: { evidence: { ends_with_session: "user@1001.service", stays: "user@1002.service" } },
      });
      expect(host.read("sessions")).toBe(ROOT + ANN + BOB + GREETER);
      expect([host.has(NOLOGIN), host.has(MARK)]).toEqual([false, false]);
    });

    it("says that a drain without force would fail while somebody stays logged in", async () => {
      host.write("sessions", ROOT + ANN);
      const { steps } = await plan({ deadline_seconds: 5, force: false });
      expect(steps["sessions"]).toMatchObject({
        message: expect.stringMatching(/ann .*no session, and fail/),
        evidence: { needs_force: true, would_end: "" },
      });
    });

    it("says that nobody is logged in, and that another program keeps users out", async () => {
      host.write(NOLOGIN, "maintenance\n");
      const { steps } = await plan({ deadline_seconds: 5, force: false });
      expect(steps["sessions"]?.evidence).toMatchObject({ needs_force: false });
      expect(steps["logins"]?.evidence).toEqual({ closed_by: "other" });
    });
  });

  it("fails when a session survives", async () => {
    host.tool("loginctl", 'if [ "$1" = list-sessions ]; then cat "$MUSTER_ROOT/sessions"; fi');
    host.write("sessions", ANN);
    const impatient = { ...QUICK, endWithinMs: 20 };
    const run = { taskId, signal: abort.signal, progress: () => undefined };
    expect(
      await drain(host.system, impatient)({ reason: "repair", deadline_seconds: 0, force: true }, run),
    ).toMatchObject({ ok: false, error: "session_survived" });
  });

  it("keeps its deadline when it is delivered again", async () => {
    host.write("sessions", ROOT);
    await start({ deadline_seconds: 600, force: false });
    const first = JSON.parse(host.read(MARK));
    await start({ deadline_seconds: 600, force: false });
    expect(JSON.parse(host.read(MARK))).toEqual(first);
  });

  it("has a new deadline after a reboot, and for another task", async () => {
    host.write("sessions", ROOT);
    await start({ deadline_seconds: 600, force: false });
    const first = JSON.parse(host.read(MARK));
    host.write("proc/sys/kernel/random/boot_id", "5f0c1a52-0000-4000-8000-000000000002\n");
    await start({ deadline_seconds: 900, force: false });
    const second = JSON.parse(host.read(MARK));
    expect(second.deadline_uptime - first.deadline_uptime).toBeGreaterThanOrEqual(300);
    host.write(MARK, JSON.stringify({ ...second, task_id: newTaskId() }));
    await start({ deadline_seconds: 1_800, force: false });
    expect(JSON.parse(host.read(MARK)).deadline_uptime - second.deadline_uptime).toBeGreaterThanOrEqual(900);
  });

  it.each([86_400_000, -86_400_000])("keeps its deadline when the wall clock is stepped by %i ms", async (step) => {
    host.write("sessions", ANN);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    try {
      const reply = start({ deadline_seconds: 600, force: true });
      await until("it waits", () => (users.length > 0 ? true : undefined));
      vi.setSystemTime(Date.now() + step);
      const looks = host.calls().length;
      await until("it has looked again", () => (host.calls().length > looks + 2 ? true : undefined));
      expect(host.calls().filter((call) => call.includes("terminate"))).toEqual([]);
      host.write("sessions", ROOT);
      expect(await reply).toMatchObject({ ok: true, result: { sessions_closed: 0 } });
    } finally {
      vi.useRealTimers();
    }
  });

  it("allows logins again when it is cancelled, but not when the agent stops", async () => {
    for (const [why, isLetIn] of [
      ["interrupted", false],
      ["cancelled", true],
    ] as const) {
      host.write("sessions", ANN);
      abort = new AbortController();
      users = [];
      const reply = start({ deadline_seconds: 600, force: false });
      await until("it waits", () => (users.length > 0 ? true : undefined));
      abort.abort(new TaskCancelled(why, why));
      await expect(reply).rejects.toThrow();
      expect([host.has(NOLOGIN), host.has(MARK)]).toEqual([!isLetIn, !isLetIn]);
    }
  });

  it("keeps a nologin file that it did not write", async () => {
    host.write(NOLOGIN, "maintenance by the site\n");
    await start({ deadline_seconds: 60, force: false });
    expect(host.read(NOLOGIN)).toBe("maintenance by the site\n");
  });

  it("fails when loginctl fails, instead of reporting an empty host", async () => {
    host.tool("loginctl", "exit 1");
    await expect(start({ deadline_seconds: 0, force: false })).rejects.toThrow(/loginctl/);
    host.remove();
    host = new HostFolder();
    await expect(start({ deadline_seconds: 0, force: false })).rejects.toThrow(/loginctl/);
  });
});
