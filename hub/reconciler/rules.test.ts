import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { isSameOwner } from "../maas/same-owner.ts";
import { MEANINGS } from "./meanings.ts";
import { judgeDrift, type MachineFacts, type NodeFacts, PHASES, type PolicyFacts } from "./rules.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const ago = (seconds: number): Date => new Date(NOW.getTime() - seconds * 1000);
const US = { name: "muster", formerNames: [] };
const node = (facts: Partial<NodeFacts> = {}): NodeFacts => ({
  status: "active",
  hostname: "c07u41",
  host: "10.0.0.5",
  machineOwner: "muster",
  held: false,
  awaitsAgent: false,
  quarantinedAt: null,
  agentSeenAt: ago(5),
  agentConnected: true,
  awayByRequest: false,
  retiredForSeconds: null,
  machineReleased: false,
  syncSeed: null,
  ...facts,
});
const machine = (facts: Partial<MachineFacts> = {}): MachineFacts => ({
  systemId: "abc123",
  status: 6,
  statusName: "Deployed",
  absent: false,
  powerState: "on",
  owner: "muster",
  locked: false,
  hostAddresses: ["10.0.0.5"],
  enableHwSync: true,
  lastSync: ago(60),
  syncIntervalSeconds: 900,
  changedAt: ago(60),
  readAt: NOW,
  ...facts,
});
const policy = (facts: Partial<PolicyFacts> = {}): PolicyFacts => ({
  requireHwSync: true,
  syncIntervalSeconds: 900,
  retiredReleaseAfterSeconds: 3_600,
  maasUser: US,
  ...facts,
});
const judge = (n: Partial<NodeFacts>, m: Partial<MachineFacts> | null = {}, p: Partial<PolicyFacts> = {}) =>
  judgeDrift(node(n), m === null ? null : machine(m), policy(p));
const said = (...facts: Parameters<typeof judge>): string[] | string => {
  const judgement = judge(...facts);
  if (judgement.kind === "not_judged") return judgement.why;
  return judgement.findings.map(({ rule, severity, action }) => `${rule} ${severity} ${action}`);
};

const text = (...facts: Parameters<typeof judge>): string | undefined => {
  const judgement = judge(...facts);
  return judgement.kind === "judged" ? judgement.findings[0]?.message : undefined;
};

const CODES = Object.keys(MEANINGS).map(Number);

describe("the nine rules of lifecycle 6.4", () => {
  it.each([
    ["Deployed, active", {}, {}, []],
    ["Deployed, offline", { status: "offline" }, {}, ["agent_offline warning none"]],
    ["Ready, active", {}, { status: 4 }, ["released_outside critical quarantine"]],
    ["Broken, active", {}, { status: 8 }, ["hardware_failure critical quarantine"]],
    ["Failed testing, active", {}, { status: 22 }, ["hardware_failure critical quarantine"]],
    ["Commissioning, active", {}, { status: 1 }, ["recommissioned_outside warning none"]],
    ["Deployed with another address", {}, { hostAddresses: ["10.0.0.9"] }, ["host_changed info update_host"]],
    ["absent, active", {}, { absent: true }, ["machine_deleted critical quarantine"]],
    [
      "Deployed, retired",
      { status: "retired", retiredForSeconds: 3_600 },
      {},
      ["retired_but_deployed info release_machine"],
    ],
  ] as const)("%s", (_name, n, m, expected) => {
    expect(said(n, m)).toEqual(expected);
  });
  it("a host that is away by request has no drift, until its agent says that the host is on again", () => {
    const away = { status: "offline", agentConnected: false, awayByRequest: true } as const;
    const silent = { powerState: "off", lastSync: ago(100_000) };
    expect(said({ ...away, awayByRequest: false }, silent)).toHaveLength(2);
    expect(said(away, silent)).toEqual([]);
    expect(said(away, { powerState: "on" })).toEqual([]);
    expect(said(away, { status: 4 })).toEqual(["released_outside critical quarantine"]);
    expect(said({ ...away, status: "active", agentConnected: true }, { lastSync: ago(100_000) })).toEqual([
      "hardware_sync_stopped warning reseed_hardware_sync",
    ]);
  });
  it("a machine without a node is not judged, because only bound nodes are rows", () => {
    expect(said({}, null)).toBe("its machine was not seen yet");
  });
});

describe("the scenarios of lifecycle 6.2 that the rules do not name", () => {
  it("an administrator deploys the machine anew", () => {
    expect(said({}, { status: 9 })).toEqual(["redeployed_outside critical quarantine"]);
    const silent = { agentSeenAt: ago(61) };
    expect(said(silent, { owner: "bob" })).toEqual(["redeployed_outside critical quarantine"]);
    expect(said({ agentSeenAt: null }, { owner: "bob" })).toEqual(["redeployed_outside critical quarantine"]);
    // The site's token now belongs to another MAAS user than before. The machine's owner is unchanged, so nobody has deployed the machine a second
    // time.
    expect(said({ machineOwner: "old" }, { owner: "old" })).toEqual([]);
    expect(said({ machineOwner: null }, { owner: "bob" })).toEqual([]);
    expect(said({ ...silent, machineOwner: null }, { owner: "bob" })).toEqual([]);
    expect(said(silent)).toEqual([]);
    // The hub heard from the agent in the moment when the machine changed, so the agent's report may be from the system before the change.
    expect(said({ agentSeenAt: ago(60) }, { owner: "bob" })).toEqual(["redeployed_outside critical quarantine"]);
    expect(text(silent, { owner: null })).toContain("is deployed by nobody in MAAS instead of muster: it was released");
  });
  it("somebody renames a user in MAAS: the same agent's report shows it", () => {
    expect(said({}, { owner: "bob" })).toEqual([]);
    const renamed = [{ owner: "new" }, { maasUser: { name: "new", formerNames: [] } }] as const;
    expect(said({}, ...renamed)).toEqual([]);
    expect(said({ agentSeenAt: ago(61) }, ...renamed)).toEqual(["redeployed_outside critical none"]);
    expect(said({ agentSeenAt: ago(61), agentConnected: false }, ...renamed)).toEqual([
      "redeployed_outside critical quarantine",
    ]);
    expect(said({ agentSeenAt: ago(61) }, { owner: "new" }, { maasUser: null })).toEqual([
      "redeployed_outside critical quarantine",
    ]);
    expect(said({ agentSeenAt: ago(61) }, { owner: null }, { maasUser: null })).toEqual([
      "redeployed_outside critical quarantine",
    ]);
  });
  it("somebody renames the hub's user: the token shows it, and no machine has changed", () => {
    const us = { maasUser: { name: "new", formerNames: ["muster"] } };
    const silent = { agentSeenAt: ago(61), agentConnected: false };
    expect(said(silent, { owner: "new" }, us)).toEqual([]);
    expect(said(silent, { owner: "bob" }, us)).toEqual(["redeployed_outside critical quarantine"]);
    // If the hub's MAAS user was renamed, a user who now has the old name is a different user.
    expect(said({ ...silent, machineOwner: "new" }, { owner: "muster" }, us)).toEqual([
      "redeployed_outside critical quarantine",
    ]);
    const retired = { status: "retired", retiredForSeconds: 7_200 } as const;
    expect(said(retired, { owner: "new" }, us)).toEqual(["retired_but_deployed info release_machine"]);
  });
  it("somebody switches the machine off", () => {
    const off = ["powered_off high none"];
    expect(said({ agentSeenAt: ago(70) }, { powerState: "off" })).toEqual(off);
    expect(said({ status: "offline", agentConnected: false }, { powerState: "off" })).toEqual(off);
  });
  it("MAAS does not know yet that the machine is on again, but its agent has reported", () => {
    expect(said({}, { powerState: "off" })).toEqual([]);
    expect(said({}, { powerState: "unknown" })).toEqual([]);
  });
  it("MAAS knows an address and the node has none, or the other way round", () => {
    const judgement = judge({ host: null });
    expect(judgement).toMatchObject({ findings: [{ rule: "host_changed", expected: "none" }] });
    expect(text({ host: null })).toContain("has the address 10.0.0.5 in MAAS instead of none");
    expect(text({ host: "10.0.0.9" })).toContain("has the address 10.0.0.5 in MAAS instead of 10.0.0.9");
    for (const host of [null, "10.0.0.5"]) expect(said({ host }, { hostAddresses: [] })).toEqual([]);
    expect(said({}, { hostAddresses: ["10.1.0.1", "10.0.0.5"] })).toEqual([]);
  });
});

describe("hardware sync", () => {
  it("is reseeded if it is later than MAAS allows, or switched off", () => {
    expect(said({}, { lastSync: ago(1_350) })).toEqual([]);
    expect(said({}, { lastSync: ago(1_351) })).toEqual(["hardware_sync_stopped warning reseed_hardware_sync"]);
    expect(said({}, { enableHwSync: false })).toEqual(["hardware_sync_stopped warning reseed_hardware_sync"]);
  });
  it("is judged at the time when the machine was read", () => {
    expect(said({}, { lastSync: ago(10_000), readAt: ago(9_000) })).toEqual([]);
  });
  it("is not reseeded without a connected agent, and not if the profile does not require it", () => {
    expect(said({ agentConnected: false }, { enableHwSync: false })).toEqual(["hardware_sync_stopped warning none"]);
    expect(text({ agentConnected: false }, { enableHwSync: false })).toContain("its agent is away");
    expect(text({}, { enableHwSync: false })).toContain("Its agent seeds the sync again");
    expect(said({}, { enableHwSync: false }, { requireHwSync: false })).toEqual([]);
  });
  it("is set by the agent if the host's interval differs from the profile, whatever interval MAAS stored at the deploy", () => {
    const often = { syncIntervalSeconds: 300 };
    expect(said({}, {}, often)).toEqual(["hardware_sync_interval info reseed_hardware_sync"]);
    expect(said({ agentConnected: false }, {}, often)).toEqual(["hardware_sync_interval info none"]);
    expect(said({ syncSeed: { asked: 300, set: 300 } }, {}, often)).toEqual([]);
    expect(said({ syncSeed: { asked: 300, set: 300 } })).toEqual(["hardware_sync_interval info reseed_hardware_sync"]);
    expect(text({ syncSeed: { asked: 300, set: null } }, {}, often)).toContain("upgrade the agent");
    expect(said({ syncSeed: { asked: 900, set: null } })).toEqual([]);
    expect(said({}, { syncIntervalSeconds: null }, often)).toEqual([]);
    expect(said({}, {}, { ...often, requireHwSync: false })).toEqual([]);
    // If the profile requires a longer sync interval than MAAS has, a host's sync is not late before the profile's interval is over.
    const seldom = { syncIntervalSeconds: 3_600 };
    expect(said({ syncSeed: { asked: 3_600, set: 3_600 } }, { lastSync: ago(2_000) }, seldom)).toEqual([]);
    expect(said({ syncSeed: { asked: 3_600, set: 3_600 } }, { lastSync: ago(5_401) }, seldom)).toEqual([
      "hardware_sync_stopped warning reseed_hardware_sync",
    ]);
  });
  it("counts as working if MAAS does not report it", () => {
    expect(said({}, { enableHwSync: null, lastSync: null, syncIntervalSeconds: null })).toEqual([]);
    expect(said({}, { lastSync: ago(100_000), syncIntervalSeconds: null })).toEqual([]);
    expect(said({}, { lastSync: null })).toEqual([]);
  });
});

describe("a quarantine", () => {
  const quarantined = { status: "quarantined", quarantinedAt: ago(600), agentSeenAt: ago(5) } as const;

  it("is told as what followed from the drift, and not as what MAAS contradicts", () => {
    const cause = "although its node was in service and is quarantined because of this";
    expect(text(quarantined, { status: 4, statusName: "Ready" })).toBe(
      `Machine abc123 of c07u41 is 'Ready' in MAAS ${cause}: it was released outside of any operation. Look at what ran there; then drain and remove the node, and onboard the host again.`,
    );
    expect(text(quarantined, { absent: true })).toContain(`is gone from MAAS ${cause}.`);
    expect(text({}, { absent: true })).toContain("is gone from MAAS although its node is active.");
  });
  const healed = (...facts: Parameters<typeof judge>) => {
    const judgement = judge(...facts);
    return judgement.kind === "judged" && judgement.heal;
  };
  it("by the reconciler ends when the machine is deployed and the agent has reported since", () => {
    expect(healed(quarantined)).toBe(true);
    expect(healed({ ...quarantined, agentSeenAt: ago(61) })).toBe(false);
    expect(healed({ ...quarantined, agentConnected: false })).toBe(false);
    expect(healed(quarantined, { owner: "bob" })).toBe(true);
    expect(healed({ ...quarantined, agentSeenAt: ago(61) }, { owner: "bob" })).toBe(false);
    expect(healed({ ...quarantined, machineOwner: null })).toBe(false);
  });
  it("by anybody else is not lifted", () => {
    const judgement = judge({ ...quarantined, quarantinedAt: null });
    expect(judgement).toEqual({ kind: "judged", findings: [], heal: false });
  });
  it("is explained while it lasts", () => {
    expect(said(quarantined, { status: 4 })).toEqual(["released_outside critical none"]);
    expect(said({ ...quarantined, agentConnected: false })).toEqual(["agent_offline warning none"]);
  });
});

describe("a retired node's machine", () => {
  const retired = { status: "retired", retiredForSeconds: 7_200 } as const;
  it("is released only if it surely is the node's, is unlocked, and its time has come", () => {
    expect(said(retired)).toEqual(["retired_but_deployed info release_machine"]);
    for (const stays of [
      said({ ...retired, retiredForSeconds: 3_599 }),
      said({ ...retired, retiredForSeconds: null }, {}, { retiredReleaseAfterSeconds: 0 }),
      said({ ...retired, machineReleased: true }),
      said(retired, { locked: true }),
      said(retired, { owner: "bob" }),
      said(retired, { owner: null }),
      said(retired, {}, { maasUser: null }),
      said(retired, {}, { retiredReleaseAfterSeconds: null }),
      said({ ...retired, machineOwner: null }),
      said({ ...retired, machineOwner: "old" }),
      said({ ...retired, machineOwner: "old" }, { owner: "old" }),
      said({ ...retired, machineOwner: null }, { owner: null }, { maasUser: null }),
      // If the hub has not heard from the agent after the machine changed, the machine may run another system than before.
      said({ ...retired, agentSeenAt: ago(61) }),
      said({ ...retired, agentSeenAt: null }),
    ])
      expect(stays).toEqual(["retired_but_deployed info none"]);
    expect(text(retired, { owner: null })).toContain("is deployed by nobody in MAAS");
    expect(text(retired, { owner: "bob" })).toContain("is deployed by bob in MAAS");
  });
  it("is left alone in any other status", () => {
    for (const status of CODES.filter((code) => code !== 6)) expect(said(retired, { status })).toEqual([]);
    expect(said(retired, { absent: true })).toEqual([]);
  });
});

describe("the table", () => {
  it("has a meaning for each of MAAS's 23 statuses and a phase for each status of a node", () => {
    expect(CODES).toEqual(Array.from({ length: 23 }, (_, code) => code));
    expect(Object.keys(PHASES)).toEqual([...NODE_STATUSES]);
  });

  const anyNode = fc.record({
    status: fc.oneof(fc.constantFrom("active", "offline", "quarantined", "retired"), fc.constantFrom(...NODE_STATUSES)),
    hostname: fc.constant("c07u41"),
    host: fc.option(fc.constantFrom("10.0.0.5", "10.0.0.9")),
    machineOwner: fc.option(fc.constantFrom("muster", "old")),
    held: fc.boolean(),
    awaitsAgent: fc.constant(false),
    quarantinedAt: fc.option(fc.constant(ago(600))),
    agentSeenAt: fc.option(fc.constantFrom(ago(5), ago(500))),
    agentConnected: fc.boolean(),
    awayByRequest: fc.boolean(),
    retiredForSeconds: fc.option(fc.constantFrom(0, 10_000)),
    machineReleased: fc.boolean(),
    syncSeed: fc.option(fc.record({ asked: fc.constantFrom(900, 300), set: fc.option(fc.constantFrom(900, 300)) })),
  });
  const anyMachine = fc.record({
    systemId: fc.constant("abc123"),
    // Most rules are about deployed machines, so the test often generates the status 6, which means Deployed.
    status: fc.oneof(fc.constant(6), fc.integer({ min: 0, max: 30 })),
    statusName: fc.constant("a status"),
    absent: fc.boolean(),
    powerState: fc.constantFrom("on", "off", "unknown", "error"),
    owner: fc.option(fc.constantFrom("muster", "bob")),
    locked: fc.boolean(),
    hostAddresses: fc.constantFrom([], ["10.0.0.5"], ["10.0.0.9", "10.1.0.1"]),
    enableHwSync: fc.option(fc.boolean()),
    lastSync: fc.option(fc.constantFrom(ago(60), ago(100_000))),
    syncIntervalSeconds: fc.option(fc.constant(900)),
    changedAt: fc.constant(ago(60)),
    readAt: fc.constant(NOW),
  });
  const anyPolicy = fc.record({
    requireHwSync: fc.boolean(),
    syncIntervalSeconds: fc.option(fc.constantFrom(900, 300)),
    retiredReleaseAfterSeconds: fc.option(fc.constantFrom(0, 3_600)),
    maasUser: fc.option(fc.constantFrom(US, { name: "muster", formerNames: ["old"] })),
  });
  it("property: changes only nodes in service, releases only retired ones, lifts only its own quarantine, and never acts on a held node", () => {
    fc.assert(
      fc.property(anyNode, anyMachine, anyPolicy, (n, m, p) => {
        const judgement = judgeDrift(n, m, p);
        if (judgement.kind === "not_judged") return;
        expect(n.held).toBe(false);
        const actions = judgement.findings.map((finding) => finding.action);
        if (actions.includes("quarantine")) {
          expect(["active", "offline"]).toContain(n.status);
          expect(m.absent || m.status !== 6 || m.owner !== n.machineOwner).toBe(true);
        }
        if (actions.includes("release_machine"))
          expect({ ...m, node: n.status, released: n.machineReleased }).toMatchObject({
            node: "retired",
            released: false,
            status: 6,
            absent: false,
            locked: false,
            owner: "muster",
          });
        if (actions.includes("release_machine"))
          expect(n).toMatchObject({
            machineOwner: isSameOwner(n.machineOwner, "muster", p.maasUser) ? n.machineOwner : "muster",
            agentSeenAt: ago(5),
            retiredForSeconds: expect.any(Number),
          });
        if (judgement.heal) expect(n).toMatchObject({ status: "quarantined", quarantinedAt: expect.any(Date) });
        if (m.status > 22 && !m.absent) expect(actions).not.toContain("quarantine");
      }),
      { numRuns: 3_000 },
    );
  });
  /** Matches the advice in a drift's message, which stands at the beginning of a sentence or of a part of a sentence. */
  const NEXT =
    /[.;:,?] (and )?(activate|bring|drain|find out|look at|nothing is to be done|read|release|remove|unlock|wait) ?/i;
  it("property: each finding says in a sentence what to do next", () => {
    fc.assert(
      fc.property(anyNode, anyMachine, anyPolicy, (n, m, p) => {
        const judgement = judgeDrift(n, m, p);
        for (const finding of judgement.kind === "judged" ? judgement.findings : [])
          for (const expected of [/^Machine abc123 of c07u41 .*[.?]$/, NEXT]) expect(finding.message).toMatch(expected);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("a node that was adopted and waits for its agent", () => {
  const waits = { status: "bootstrap_issued", awaitsAgent: true, agentSeenAt: null, agentConnected: false } as const;

  it("has no drift while its machine is deployed, on and in sync", () => {
    expect(said(waits)).toEqual([]);
    expect(said({ ...waits, status: "enrolling" })).toEqual([]);
  });

  it.each(CODES)(
    "has the drift that a node in service has if its machine has the status %s, and is never acted on",
    (status) => {
      const asInService = said({ agentSeenAt: null, agentConnected: false }, { status });
      const told = said(waits, { status });
      if (!Array.isArray(asInService)) throw new Error("a node in service is judged");
      expect(told).toEqual(asInService.map((one) => one.replace(/ quarantine$/, " none")));
    },
  );

  it("is told of a machine that is gone, off, of another owner, or without hardware sync", () => {
    expect(said(waits, { absent: true })).toEqual(["machine_deleted critical none"]);
    expect(said(waits, { owner: "bob" })).toEqual(["redeployed_outside critical none"]);
    expect(said(waits, { powerState: "off" })).toEqual(["powered_off high none"]);
    expect(said(waits, { enableHwSync: false })).toEqual(["hardware_sync_stopped warning none"]);
    expect(text(waits, { status: 4, statusName: "Ready" })).toContain("although its node was adopted from it");
  });

  it("is told to be removed before its host has enrolled, because the hub has nothing to drain there", () => {
    const gone = [{ absent: true }, { owner: "bob" }, ...CODES.map((status) => ({ status }))];
    const told = gone.flatMap((machine) => text(waits, machine)?.match(/(?:drain and )?remove the node/gi) ?? []);
    expect(told.length).toBeGreaterThan(4);
    expect(told.filter((words) => /drain/i.test(words))).toEqual([]);
    expect(text({ ...waits, status: "enrolling" }, { absent: true })).toContain("Drain and remove the node");
  });

  it("gets no task for its host even if an agent is connected, because nobody has proven which host it is", () => {
    const connected = { ...waits, status: "enrolling", agentConnected: true, agentSeenAt: NOW } as const;
    expect(said(connected, { enableHwSync: false })).toEqual(["hardware_sync_stopped warning none"]);
    expect(said(connected, { syncIntervalSeconds: 600 })).toEqual(["hardware_sync_interval info none"]);
  });

  it("gets the address of its host, and is not judged while an operation holds it", () => {
    expect(said({ ...waits, host: null })).toEqual(["host_changed info update_host"]);
    expect(said({ ...waits, held: true })).toBe("an operation holds the node");
  });
});
