import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NodeId } from "../../shared/ids.ts";
import { AddressBudgets, addressKey } from "./address-budgets.ts";
import { ask, type Bucket, charge, LIMITS, NODE_RATES, type Rate } from "./budgets.ts";
import { NodeBudgets } from "./node-budgets.ts";

const NODE = "00000000-0000-4000-8000-000000000001" as NodeId;
const rates = fc.record({ burst: fc.integer({ min: 1, max: 100 }), perMinute: fc.integer({ min: 1, max: 1_000 }) });
const pauses = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 200 });

describe("a budget", () => {
  it("allows no more than its burst and its rate, in whatever pattern requests come", () => {
    fc.assert(
      fc.property(rates, pauses, (rate: Rate, waits) => {
        let bucket: Bucket | undefined;
        let [now, given] = [1_000, 0];
        for (const wait of waits) {
          now += wait;
          const asked = ask(rate, bucket, now);
          bucket = asked.bucket;
          if (asked.waitMs === 0) given += 1;
        }
        expect(given).toBeLessThanOrEqual(rate.burst + ((now - 1_000) * rate.perMinute) / 60_000 + 1e-6);
      }),
    );
  });

  it("tells the time of the next allowed request to the millisecond", () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 0, max: 150 }), fc.nat(), (rate, times, some) => {
        let bucket: Bucket | undefined;
        for (let n = 0; n < times; n += 1) bucket = ask(rate, bucket, 0).bucket;
        const { waitMs } = ask(rate, bucket, 0);
        expect(waitMs > 0).toBe(times >= rate.burst);
        expect(ask(rate, bucket, waitMs).waitMs).toBe(0);
        if (waitMs === 0) return;
        // `waitMs` is the number of whole milliseconds after which the budget allows one more request.
        expect(waitMs * rate.perMinute).toBeGreaterThanOrEqual(60_000);
        expect((waitMs - 1) * rate.perMinute).toBeLessThan(60_000);
        // A request during the wait gets a `waitMs` that ends at the same time as the first `waitMs`, except for one millisecond of rounding.
        const now = some % waitMs;
        const left = ask(rate, bucket, now).waitMs - (waitMs - now);
        expect(left === 0 || left === 1).toBe(true);
      }),
    );
  });

  it("always accepts a frame, and a sender that waits as told keeps to the budget", () => {
    fc.assert(
      fc.property(rates, fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1 }), (rate, costs) => {
        let bucket: Bucket | undefined;
        let [now, taken] = [0, 0];
        for (const cost of costs.map((one) => Math.min(one, rate.burst))) {
          const charged = charge(rate, bucket, now, cost);
          bucket = charged.bucket;
          now += charged.waitMs;
          taken += cost;
          expect(taken).toBeLessThanOrEqual(rate.burst + (now * rate.perMinute) / 60_000 + 1e-6);
        }
      }),
    );
  });

  it("never requires a wait longer than a burst takes, whatever was sent", () => {
    fc.assert(
      fc.property(rates, fc.array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 1 }), (rate, costs) => {
        let bucket: Bucket | undefined;
        for (const cost of costs) {
          const charged = charge(rate, bucket, 0, cost);
          bucket = charged.bucket;
          expect(charged.waitMs).toBeLessThanOrEqual(Math.ceil((rate.burst * 60_000) / rate.perMinute));
        }
      }),
    );
  });
});

describe("a node's budgets", () => {
  const clock = () => {
    const time = { now: 0 };
    return { time, budgets: new NodeBudgets(undefined, () => time.now) };
  };

  it("are counted separately for each node and each kind of message", () => {
    const { budgets } = clock();
    for (let n = 0; n < NODE_RATES.renewal.burst; n += 1) expect(budgets.ask(NODE, "renewal")).toBe(0);
    expect(budgets.ask(NODE, "renewal")).toBeGreaterThan(0);
    expect(budgets.ask(NODE, "session")).toBe(0);
    expect(budgets.ask(`${NODE.slice(0, -1)}2` as NodeId, "renewal")).toBe(0);
  });

  it("call a node noisy once, after a long time over one of them, and calm after a longer time within them", () => {
    const { time, budgets } = clock();
    const flood = (forMs: number) => {
      for (const end = time.now + forMs; time.now < end; ) time.now += Math.max(1, budgets.charge(NODE, "readiness"));
    };
    flood(LIMITS.noisyAfterMs - 2_000);
    expect([budgets.isNoisy(NODE), budgets.sweep()]).toEqual([false, []]);
    flood(4_000);
    expect(budgets.isNoisy(NODE)).toBe(true);
    flood(60_000);
    expect(budgets.sweep()).toEqual([{ nodeId: NODE, noisy: true, kind: "readiness" }]);
    time.now += LIMITS.calmAfterMs - 1_000;
    expect([budgets.isNoisy(NODE), budgets.sweep()]).toEqual([false, []]);
    time.now += 2_000;
    expect(budgets.sweep()).toEqual([{ nodeId: NODE, noisy: false, kind: "readiness" }]);
    time.now += 600_000;
    expect([budgets.sweep(), budgets.size]).toEqual([[], 0]);
  });

  it("do not call a node noisy that is refused now and then, for however long", () => {
    const { time, budgets } = clock();
    for (let n = 0; n < 1_000; n += 1) {
      budgets.ask(NODE, "renewal");
      time.now += 10_000;
    }
    expect(budgets.sweep()).toEqual([]);
  });

  /**
   * The test sends as many requests and frames as `agent/agent.ts` can send. An agent sends most at the shortest heartbeat interval, with connections
   * that break at once, and at a first boot.
   */
  it("are never reached by an agent, neither one that reconnects all the time nor one that sends everything for an hour", () => {
    const { time, budgets } = clock();
    const spend = (kind: keyof typeof NODE_RATES, cost = 1) => expect(budgets.charge(NODE, kind, cost)).toBe(0);
    for (let second = 0; second < 3_600; second += 1, time.now += 1_000) {
      if (second % 4 === 0) {
        expect(budgets.ask(NODE, "session")).toBe(0);
        spend("bytes", 20_000);
        spend("inventory");
        spend("readiness");
      }
      for (let beat = 0; beat < 3; beat += 1) spend("heartbeat");
      if (second % 2 === 0) spend("task");
      if (second % 2 === 1) spend("progress", second % 4 === 1 ? 1 : 0);
      if (second % 60 === 0) expect(budgets.ask(NODE, "renewal")).toBe(0);
    }
    expect(budgets.sweep()).toEqual([]);
  });
});

describe("an address's budgets", () => {
  it.each([
    ["10.0.0.1", "10.0.0.1"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:1:2::9", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::10.0.0.1", "64:ff9b:0:0::/64"],
  ])("of %s are those of %s", (address, key) => {
    expect(addressKey(address)).toBe(key);
  });

  it("let a thousand hosts behind one address connect at once, and forget addresses that are silent", () => {
    const time = { now: 0 };
    const budgets = new AddressBudgets(undefined, () => time.now);
    for (let n = 0; n < 4_000; n += 1) expect(budgets.ask("10.0.0.1", "connection")).toBe(0);
    for (let n = 0; n < 4_000; n += 1) expect(budgets.ask("10.0.0.1", "refusal")).toBe(0);
    budgets.sweep();
    expect(budgets.size).toBe(2);
    time.now += 600_000;
    budgets.sweep();
    expect(budgets.size).toBe(0);
  });

  it("do not use more memory for more addresses", () => {
    const budgets = new AddressBudgets(undefined, () => 0);
    for (let n = 0; n < 30_000; n += 1) budgets.ask(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, "refusal");
    expect(budgets.size).toBe(20_000);
  });
});
