import { expect, it } from "vitest";
import { ALLOCATION_STATUSES, type AllocationStatus } from "../../shared/allocation-status.ts";
import { INSTANCE_STATUSES } from "../../shared/api/instances.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { Lack } from "../../shared/readiness-policy.ts";
import { type InstanceFacts, instanceStatus } from "./instance-status.ts";

type Open = Exclude<AllocationStatus, "ended">;
const OPEN = ALLOCATION_STATUSES.filter((status): status is Open => status !== "ended");
const LACKS: readonly (readonly Lack[])[] = [[], ...Lack.options.map((lack) => [lack]), ["missing", "stale"]];
const BOTH = [false, true] as const;
const POWER = ["stopping", "off", "restarting", null] as const;
const NO_REINSTALL = { reinstall: null, isLostToReinstall: false } as const;
const DOMAIN: readonly InstanceFacts[] = OPEN.flatMap((allocation) =>
  [...NODE_STATUSES, null].flatMap((node) =>
    LACKS.flatMap((lacks) =>
      BOTH.flatMap((isRepaired) =>
        BOTH.flatMap((hasFailedTurnover) =>
          POWER.map((power) => ({ allocation, node, lacks, isRepaired, power, hasFailedTurnover, ...NO_REINSTALL })),
        ),
      ),
    ),
  ),
);
const only = (status: string, wanted: (facts: InstanceFacts) => boolean) =>
  expect(DOMAIN.filter((facts) => instanceStatus(facts).status === status)).toEqual(DOMAIN.filter(wanted));

const comesYet = ({ lacks }: InstanceFacts) => lacks.every((one) => one === "missing" || one === "older_generation");
const isSwitched = ({ allocation, node, power }: InstanceFacts) =>
  (allocation === "granting" || allocation === "active") && (node === "active" || node === "offline") && power !== null;
const isUp = (one: InstanceFacts) => one.node === "active" && one.lacks.length === 0 && !isSwitched(one);
const isInstalled = ({ node }: InstanceFacts) => node === "bootstrap_issued" || node === "enrolling";
const waits = (facts: InstanceFacts) =>
  facts.node === "active" && facts.lacks.length > 0 && comesYet(facts) && !isSwitched(facts);

it("has each status exactly where its rule says, over the whole domain", () => {
  expect(DOMAIN).toHaveLength(4 * 10 * 9 * 4 * 4);
  only("Ready", (one) => one.allocation === "active" && isUp(one) && !one.isRepaired);
  only("Repairing", (one) => one.allocation === "active" && isUp(one) && one.isRepaired);
  only("Rebooting", (one) => isSwitched(one) && one.power === "restarting");
  only("Stopped", (one) => isSwitched(one) && one.power !== "restarting");
  only("Terminating", (one) => one.allocation === "ending" && !one.hasFailedTurnover);
  only("Pending", (one) => one.allocation === "granting" && waits(one));
  only("Provisioning", (one) =>
    one.allocation === "granting"
      ? isInstalled(one) || isUp(one)
      : one.allocation === "active" && (isInstalled(one) || waits(one)),
  );
});

it("is every status for some facts, and tells why", () => {
  const found = new Set(DOMAIN.map((facts) => instanceStatus(facts).status));
  expect([...found].toSorted()).toEqual([...INSTANCE_STATUSES].toSorted());
  for (const facts of DOMAIN) expect(instanceStatus(facts).reason).toMatch(/^The /);
});

it("says what to do next of an instance that is off by request, and nothing against a host that is away by request", () => {
  const off = {
    allocation: "active",
    node: "offline",
    lacks: ["stale"],
    isRepaired: false,
    hasFailedTurnover: false,
    ...NO_REINSTALL,
  } as const;
  expect(instanceStatus({ ...off, power: "off" }).nextAction).toContain("power-on-instance");
  expect(instanceStatus({ ...off, power: "stopping" }).nextAction).toBeNull();
  expect(instanceStatus({ ...off, power: null }).status).toBe("Error");
});

const FAILED = { failed: true };
const RUNS = { failed: false };
it.each<[string, Partial<InstanceFacts>, string | null]>([
  ["runs", { allocation: "active", reinstall: RUNS }, "Provisioning"],
  ["runs with the account gone", { allocation: "active", reinstall: RUNS, isLostToReinstall: true }, "Provisioning"],
  [
    "runs although the instance ends",
    { allocation: "ending", reinstall: RUNS, hasFailedTurnover: false },
    "Terminating",
  ],
  ["failed", { allocation: "active", reinstall: FAILED }, "Error"],
  ["failed although the instance ends", { allocation: "ending", reinstall: FAILED }, "Error"],
  ["is over without the account", { allocation: "active", reinstall: null, isLostToReinstall: true }, "Error"],
])("shows a reinstall that %s, whatever the node's status is", (_, facts, status) => {
  const wanted = Object.keys(facts).filter((key) => !["reinstall", "isLostToReinstall"].includes(key));
  const fitting = DOMAIN.filter((one) => wanted.every((key) => one[key as "node"] === facts[key as "node"]));
  expect(fitting.length).toBeGreaterThan(700);
  for (const one of fitting) {
    const told = instanceStatus({ ...one, ...facts });
    expect(told.status).toBe(status);
    if (status === "Error")
      expect(told).toMatchObject({
        reason: expect.stringMatching(/^The /),
        nextAction:
          facts.allocation === "ending"
            ? expect.not.stringContaining("release the instance")
            : expect.stringContaining("release the instance"),
      });
  }
});
