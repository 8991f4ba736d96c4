import { describe, expect, it } from "vitest";
import { ADOPTION_DIFFERENCES, type AdoptionDifferenceKind } from "../../shared/adoption.ts";
import { SiteId } from "../../shared/ids.ts";
import { MAAS_STATUS } from "../../shared/maas-status.ts";
import type { MachineDetails } from "../../shared/machine-details.ts";
import { DETAILS, MACHINE, NOW } from "./machines.fixture.ts";
import { type AdoptionPolicy, judgeMachine, type MachineToAdopt, type Surroundings } from "./rules.ts";

const ago = (seconds: number): Date => new Date(NOW.getTime() - seconds * 1000);
const machine = (facts: Partial<MachineToAdopt> = {}): MachineToAdopt => ({
  ...MACHINE,
  interfaceAddresses: [{ interface: "rail0", address: "172.30.0.1" }],
  lastSync: ago(60),
  ...facts,
});
const around = (facts: Partial<Surroundings> = {}): Surroundings => ({
  boundTo: null,
  namesake: null,
  heldBy: null,
  hasTwin: false,
  elsewhere: null,
  bmc: "10.0.0.1",
  bmcSharedWith: null,
  roce: [{ interface: "rail0", ipv4Cidr: "172.30.0.1/31" }],
  ...facts,
});
const policy = (facts: Partial<AdoptionPolicy> = {}): AdoptionPolicy => ({
  requireHwSync: true,
  syncIntervalSeconds: 900,
  image: "ubuntu/noble",
  architecture: "amd64/generic",
  appliesRoce: true,
  memoryGib: 1,
  maasUser: "muster",
  accepted: new Set(),
  now: NOW,
  ...facts,
});
const judge = (m: Partial<MachineToAdopt> = {}, a: Partial<Surroundings> = {}, p: Partial<AdoptionPolicy> = {}) =>
  judgeMachine(machine(m), around(a), policy(p));
const details = (facts: Partial<MachineDetails>) => ({ details: { ...DETAILS, ...facts } });

type KindOfMachine = Exclude<AdoptionDifferenceKind, "other_gpus">;
/** For each kind of difference of a machine, a machine that differs from the request in this way only. */
const DIFFERING: Readonly<Record<KindOfMachine, readonly [Partial<MachineToAdopt>, Partial<Surroundings>?]>> = {
  hardware_sync_off: [{ enableHwSync: false }],
  hardware_sync_stale: [{ lastSync: ago(1_351) }],
  hardware_sync_interval: [{ syncIntervalSeconds: 600 }],
  roce_missing: [{ interfaceAddresses: [] }],
  roce_other: [{ interfaceAddresses: [...machine().interfaceAddresses, { interface: "rail0", address: "1.2.3.4" }] }],
  other_owner: [{ owner: "bob" }],
  other_image: [details({ distro_series: "jammy" })],
  other_architecture: [details({ architecture: "arm64/generic" })],
  locked: [{ locked: true }],
  ephemeral: [details({ ephemeral: true })],
  powered_off: [{ powerState: "off" }],
  bmc_unknown: [{}, { bmc: "" }],
  bmc_shared: [{}, { bmcSharedWith: "c07u42" }],
  hardware_uuid_unknown: [details({ hardware_uuid: null })],
  other_memory: [details({ memory_mib: 921 })],
};

describe("a running machine", () => {
  it("is adopted if it is as the request says", () => {
    expect(judge()).toEqual({ outcome: "adopted", differences: [], refusals: [] });
  });

  const kinds = ADOPTION_DIFFERENCES.filter((kind): kind is KindOfMachine => kind !== "other_gpus");
  it.each(kinds)("is refused for the difference %s, and for no other", (kind) => {
    const [m, a] = DIFFERING[kind];
    const { outcome, differences, refusals } = judge(m, a);
    expect({ outcome, kinds: differences.map((one) => one.kind) }).toEqual({ outcome: "refused", kinds: [kind] });
    expect(refusals.map(({ code }) => code)).toEqual(["difference"]);
    expect(refusals[0]?.message).toContain(kind);
  });

  it.each(kinds)("is adopted in spite of %s if the request accepts this kind, and the difference is told", (kind) => {
    const [m, a] = DIFFERING[kind];
    const verdict = judge(m, a, { accepted: new Set([kind]) });
    expect(verdict).toMatchObject({ outcome: "adopted", differences: [{ kind }], refusals: [] });
  });

  it("is refused if one of two differences is not accepted", () => {
    const both = judge({ locked: true, owner: "bob" }, {}, { accepted: new Set(["locked"] as const) });
    expect(both).toMatchObject({ outcome: "refused", differences: [{ kind: "other_owner" }, { kind: "locked" }] });
    expect(both.refusals[0]?.message).toMatch(/[(]other_owner[)]/);
  });

  it("needs neither hardware sync nor RoCE rows if its profile does not", () => {
    const off = { requireHwSync: false, appliesRoce: false };
    expect(judge({ enableHwSync: false, lastSync: null, interfaceAddresses: [] }, {}, off).outcome).toBe("adopted");
  });

  it("has a fresh hardware sync up to one and a half intervals, and none is not fresh", () => {
    expect(judge({ lastSync: ago(1_350) }).outcome).toBe("adopted");
    expect(judge({ lastSync: null }).differences.map(({ found }) => found)).toEqual(["no hardware sync"]);
  });

  it("of a MAAS that does not show whether hardware sync is on is judged by its last sync", () => {
    expect(judge({ enableHwSync: null, syncIntervalSeconds: null }).outcome).toBe("adopted");
  });

  it("has another image if its system is of another distributor, and is off only if MAAS says so", () => {
    expect(judge(details({ osystem: "custom" })).differences.map(({ kind }) => kind)).toEqual(["other_image"]);
    expect(judge({ powerState: "unknown" }).outcome).toBe("adopted");
  });

  it("may have more memory than its SKU says, and a tenth less, which the firmware keeps; unknown memory is no difference", () => {
    for (const memory_mib of [922, 1_024, 4_096, 0, null])
      expect(judge(details({ memory_mib })).outcome, String(memory_mib)).toBe("adopted");
    expect(judge(details({ memory_mib: 1 }), {}, { memoryGib: undefined }).outcome, "a SKU without memory").toBe(
      "adopted",
    );
    expect(judge(details({ memory_mib: 2 * 1_024 }), {}, { memoryGib: 4 }).differences).toMatchObject([
      { kind: "other_memory", expected: "4 GiB", found: "2 GiB" },
    ]);
  });

  it("is told apart from its RoCE rows interface by interface", () => {
    const roce = [
      { interface: "rail0", ipv4Cidr: "172.30.0.1/31" },
      { interface: "rail1", ipv4Cidr: "172.30.1.1/31" },
    ];
    const { differences } = judge({}, { roce });
    expect(differences).toMatchObject([
      { kind: "roce_missing", expected: "rail1 172.30.1.1", found: "rail1 without an address" },
    ]);
  });
});

describe("a machine is refused whatever differences the request accepts", () => {
  const all = { accepted: new Set(ADOPTION_DIFFERENCES) };
  const codes = (m: Partial<MachineToAdopt>, a: Partial<Surroundings> = {}) => {
    const { outcome, refusals } = judge(m, a, all);
    expect(outcome).toBe("refused");
    return refusals.map(({ code }) => code);
  };

  it.each(Object.entries(MAAS_STATUS).filter(([name]) => name !== "deployed"))("if it is %s", (statusName, status) => {
    expect(codes({ status, statusName })).toEqual(["not_deployed"]);
  });

  it("if it is gone, unreadable, without a MAC address, or has a name that no node can have", () => {
    expect(codes({ absent: true })).toEqual(["machine_gone"]);
    expect(codes({}, { bmc: null })).toEqual(["machine_gone"]);
    expect(codes({ details: null })).toEqual(["machine_unreadable"]);
    for (const macs of [[], [""], ["00:00:00:00:00:00"], ["02:00:00:00:00:01", "52:54:00:12:34:56"]])
      expect(codes(details({ macs })), macs.join()).toEqual(["no_mac_address"]);
    for (const hostname of ["", "a_b", "A", "x".repeat(64), "=cmd", "-a", "a\nb"])
      expect(codes({ hostname }), hostname).toEqual(["hostname_invalid"]);
  });

  it("if its name, the machine itself or the host is taken", () => {
    expect(codes({}, { hasTwin: true })).toEqual(["hostname_ambiguous"]);
    expect(codes({}, { namesake: { id: "n", status: "active" } })).toEqual(["hostname_taken"]);
    expect(codes({}, { elsewhere: { siteId: SiteId.parse("16fd2706-8baf-433b-82eb-8c7fada847da") } })).toEqual([
      "machine_taken",
    ]);
    expect(codes({}, { heldBy: "w" })).toEqual(["held"]);
  });

  it("and every reason is told", () => {
    expect(codes({ status: 4, statusName: "Ready", details: null }, { hasTwin: true, heldBy: "w" })).toEqual([
      "not_deployed",
      "machine_unreadable",
      "hostname_ambiguous",
      "held",
    ]);
  });

  it("but a machine that is a node already only says so, whatever state it is in", () => {
    const boundTo = { id: "n", status: "active" } as const;
    expect(judge({ status: 4, details: null }, { boundTo, hasTwin: true })).toEqual({
      outcome: "exists",
      differences: [],
      refusals: [],
    });
  });
});
