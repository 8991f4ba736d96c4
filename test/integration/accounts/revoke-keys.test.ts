import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compareResidue } from "../../../shared/residue/compare.ts";
import type { ResidueReading, ResidueTenant } from "../../../shared/residue/snapshot.ts";
import type { TaskReply } from "../../../shared/tasks/index.ts";
import { type GrantOrder, granted, grantOrder } from "../../support/tenant-orders.ts";
import { TenantWorld } from "../../support/tenant-world.ts";
import { until } from "../../support/until.ts";

const lacks =
  TenantWorld.lacks() ?? (canUseKeys() ? null : "this machine has no keyctl, or forbids keys of the kernel");

function canUseKeys(): boolean {
  const asUser = "setpriv --reuid 64999 --regid 64999 --clear-groups keyctl";
  return spawnSync("sh", ["-c", `${asUser} add user mtst secret @u && ${asUser} clear @u`]).status === 0;
}

/** The keys of the kernel have no namespace of their own, so the tests see the real keys of this machine by their uid. */
describe.skipIf(lacks !== null)(`the kernel keys of a tenant${lacks === null ? "" : ` (skipped: ${lacks})`}`, () => {
  let world: TenantWorld;
  beforeAll(async () => {
    world = await TenantWorld.start();
    // Other tests leave keys of the first uids of tenants, so the tests here use later uids.
    const next = JSON.stringify({ next_uid: 30_000 + Math.floor(Math.random() * 20_000) });
    await world.sh(`mkdir -p /var/lib/muster/agent; echo '${next}' > /var/lib/muster/agent/next-uid.json`);
  });
  afterAll(() => world?.end());

  const revoke = ({ allocation_id, login_user }: GrantOrder, plan = false) =>
    world.task("allocation.revoke_user", { allocation_id, login_user, plan });
  const stepOf = (reply: TaskReply<"allocation.revoke_user">) =>
    reply.ok ? reply.result.steps.find(({ step }) => step === "keyrings") : reply;
  const as = (uid: number, words: string): string => `setpriv --reuid ${uid} --regid ${uid} --clear-groups ${words}`;
  const keysOf = (uid: number): Promise<string> => world.sh(`grep -E '^ *${uid}: ' /proc/key-users || true`);
  /** Leaves a key in the user keyring and a key in the persistent keyring of the uid, in processes that have ended. */
  const leave = (uid: number): Promise<string> =>
    world.sh(`${as(uid, "keyctl add user mtst-plain secret @u")}
      keyctl session mtst ${as(uid, `sh -c 'keyctl add user mtst-ticket secret $(keyctl get_persistent @s)'`)}`);
  const credentials = async (tenant: ResidueTenant | null): Promise<ResidueReading> => {
    const order = { root: "/", tenant, items: ["credentials"], pauseMs: 0 };
    const program = "$W/node $W/repository/agent/system/residue/main.ts";
    return JSON.parse(await world.sh(`${program} '${JSON.stringify(order)}'`)).reading;
  };
  const judged = async (before: ResidueReading, tenant: ResidueTenant) =>
    compareResidue({ credentials: before }, { credentials: await credentials(tenant) }, tenant).items.credentials;

  it("are residue of the host, and a revocation removes them, so that the next account with the uid has none", async () => {
    const order = grantOrder();
    const uid = await granted(world, order);
    const tenant = { login_user: order.login_user, uid };
    const baseline = await credentials(null);
    expect(await judged(baseline, tenant)).toEqual({ state: "clean" });
    await leave(uid);
    const found = { state: "found", found: [{ name: `kernel keys of user ${uid}`, kind: "tenant" }], more: 0 };
    expect(await judged(baseline, tenant)).toEqual(found);
    expect(await judged(await credentials(tenant), tenant), "in a baseline of the same state").toEqual(found);
    expect(stepOf(await revoke(order, true))).toMatchObject({ outcome: "planned", evidence: { keys: 5 } });
    expect(await judged(baseline, tenant)).toEqual(found);
    expect(stepOf(await revoke(order))).toMatchObject({ outcome: "ok", evidence: { keys: 5, after: 0 } });
    expect(await keysOf(uid)).not.toMatch(/ [1-9][0-9]*\/[0-9]+ [0-9]+\/[0-9]+ [0-9]+\/[0-9]+$/);
    expect(await judged(baseline, tenant)).toEqual({ state: "clean" });
    expect(await world.sh(as(uid, "keyctl list @u"))).toContain("keyring is empty");
    // Until the kernel has collected the invalidated keyring @us, a process of the user may not reach the keyring @u.
    for (const ring of ["@us", "@u"])
      await until(`the keyring ${ring} of user ${uid} to be invalidated`, async () => {
        await world.sh(as(uid, `keyctl invalidate ${ring}`));
        return true;
      });
  });

  it("count also as an empty persistent keyring, which no quota counts", async () => {
    const order = grantOrder();
    const uid = await granted(world, order);
    const baseline = await credentials(null);
    await world.sh(`keyctl session mtst keyctl get_persistent @s ${uid}`);
    const tenant = { login_user: order.login_user, uid };
    expect(await judged(baseline, tenant)).toMatchObject({ state: "found" });
    expect(stepOf(await revoke(order))).toMatchObject({ outcome: "ok", evidence: { keys: 1, after: 0 } });
    expect(await judged(baseline, tenant)).toEqual({ state: "clean" });
  });

  it("go also if the tenant hid its keyrings from the list of keys", async () => {
    const order = grantOrder();
    const uid = await granted(world, order);
    await leave(uid);
    await world.sh(`${as(uid, "keyctl setperm @us 0x28280000")}; ${as(uid, "keyctl setperm @u 0x28280000")}`);
    expect(await world.sh(as(uid, "cat /proc/keys"))).not.toContain(`_uid.${uid}`);
    expect(stepOf(await revoke(order))).toMatchObject({ outcome: "ok", evidence: { after: 0 } });
  });

  it("leave no success if the tenant took every right from a keyring", async () => {
    const order = grantOrder();
    const uid = await granted(world, order);
    await leave(uid);
    await world.sh(as(uid, "keyctl timeout @u 40"));
    await world.sh(as(uid, "keyctl setperm @u 0"));
    const step = stepOf(await revoke(order));
    expect(step).toMatchObject({ outcome: "failed", message: expect.stringContaining("A restart of the host") });
    expect((await credentials({ login_user: order.login_user, uid })) satisfies ResidueReading).toMatchObject({
      entries: expect.arrayContaining([expect.objectContaining({ name: `kernel keys of user ${uid}` })]),
    });
  });

  it("are unreadable, and not removed, where a sandbox hides the kernel's list", async () => {
    const order = grantOrder();
    await granted(world, order);
    await world.sh("mkdir -p $W/empty/sys/kernel/keys; mount --bind /proc $W/outside; mount --bind $W/empty /proc");
    try {
      const hidden = JSON.stringify({ root: "/", tenant: null, items: ["credentials"], pauseMs: 0 });
      const main = "$W/node $W/repository/agent/system/residue/main.ts";
      expect(await world.sh(`${main} '${hidden}'`)).toContain("/proc/key-users cannot be read here");
    } finally {
      await world.sh("umount /proc; umount $W/outside");
    }
    expect((await revoke(order)).ok).toBe(true);
  });
});
