import { describe, expect, it } from "vitest";
import { disk, events } from "./machine/machines.fixture.ts";
import { OnboardState } from "./onboarding/onboard-state.ts";
import { choosePowerCredentials, type PowerOverride } from "./onboarding/power-credentials.ts";
import { findBootDisk } from "./provisioning/boot-disk.ts";
import { classifyDeployFailure } from "./provisioning/deploy-failure.ts";
import { deployedSeries } from "./provisioning/distro-series.ts";
import { siteBootstrap } from "./provisioning/first-boot.ts";
import { hardwareSyncIsHealthy } from "./provisioning/hardware-sync.ts";
import { addressOf, networkOf } from "./provisioning/ipv4.ts";

describe("choosePowerCredentials", () => {
  const host = { pxeMac: "02:00:00:00:00:01", ipmiIp: "10.0.0.5", hostname: "c07u43" };
  const override = (
    selectorType: PowerOverride["selectorType"],
    selectorValue: string,
    status: PowerOverride["status"] = "active",
  ) => ({
    selectorType,
    selectorValue,
    vaultPath: `path/${selectorType}`,
    status,
  });
  const all = [
    override("hostname", "c07u43"),
    override("ipmi_ip", "10.0.0.5"),
    override("pxe_mac", "02:00:00:00:00:01"),
  ];

  it("prefers MAC over BMC address over hostname over the site's default", () => {
    expect(choosePowerCredentials(all, host, "default")?.selector).toBe("pxe_mac");
    expect(choosePowerCredentials(all.slice(0, 2), host, "default")?.selector).toBe("ipmi_ip");
    expect(choosePowerCredentials(all.slice(0, 1), host, "default")?.selector).toBe("hostname");
    expect(choosePowerCredentials([], host, "default")).toEqual({ selector: "default", path: "default" });
  });

  it("ignores disabled overrides and overrides of other hosts", () => {
    const others = [override("ipmi_ip", "10.0.0.6"), override("hostname", "c07u43", "disabled")];
    expect(choosePowerCredentials(others, host, "default")?.selector).toBe("default");
    expect(choosePowerCredentials(others, { ...host, pxeMac: null }, null)).toBeNull();
  });

  it("recognizes a BMC's address in any spelling", () => {
    const long = override("ipmi_ip", "2001:DB8:0:0::5");
    expect(choosePowerCredentials([long], { ...host, ipmiIp: "2001:db8::5" }, "default")?.selector).toBe("ipmi_ip");
    expect(choosePowerCredentials([long], { ...host, ipmiIp: "2001:db8::6" }, "default")?.selector).toBe("default");
  });
});

describe("findBootDisk", () => {
  it("stops a pattern with endless backtracking, and matches any other pattern", () => {
    const began = performance.now();
    const long = disk({ model: `${"a".repeat(60)}!` });
    expect(findBootDisk([long], "^(a+)+$")).toEqual({ kind: "endless" });
    expect(performance.now() - began).toBeLessThan(20_000);
    expect(findBootDisk([long], "^a+!$").kind).toBe("found");
  });

  const pattern = "boss|boot optimized|m\\.2";
  const nvme = disk({ id: 2, name: "nvme0n1", model: "Dell NVMe PM1743" });

  it("finds the one disk by model, name or id_path, in any case", () => {
    const boss = disk({ id: 7, model: "DELLBOSS VD" });
    expect(findBootDisk([nvme, boss], pattern)).toEqual({ kind: "found", disk: boss });
    expect(findBootDisk([disk({ idPath: "/dev/disk/by-id/ata-M.2_480" })], pattern).kind).toBe("found");
  });

  it("finds no disk if none or several match", () => {
    expect(findBootDisk([nvme], pattern)).toEqual({ kind: "missing" });
    expect(findBootDisk([disk({ id: 1, model: "BOSS" }), disk({ id: 2, model: "BOSS" })], pattern).kind).toBe(
      "ambiguous",
    );
  });

  it("ignores virtual devices, and matches a pattern that is no regular expression literally", () => {
    expect(findBootDisk([disk({ type: "virtual", model: "BOSS" })], pattern)).toEqual({ kind: "missing" });
    expect(findBootDisk([disk({ model: "card (boss" })], "(BOSS").kind).toBe("found");
  });
});

describe("classifyDeployFailure", () => {
  const failed = (error_description: string, reason: "failed" | "timeout" = "failed") => ({
    reason,
    error_description,
    status_message: "",
  });
  const silent = events("Deploying", "Installing OS", "Rebooting", "Marking node failed");

  it("recognizes a datasource failure by a timeout after `Rebooting`, in both of MAAS's wordings or by the stage's own timeout", () => {
    expect(classifyDeployFailure(failed("time-out during deployment"), silent)).toBe("datasource_like");
    expect(classifyDeployFailure(failed("Node operation 'Deploying' timed out after 30 minutes."), silent)).toBe(
      "datasource_like",
    );
    expect(classifyDeployFailure(failed("", "timeout"), silent)).toBe("datasource_like");
  });

  it("classifies a failed install, a dead BMC and unreadable events as generic", () => {
    const curtin = events("Deploying", "Node installation failure", "Marking node failed");
    expect(classifyDeployFailure(failed("Installation failed"), curtin)).toBe("generic");
    expect(classifyDeployFailure(failed("Failed to power on"), events("Deploying"))).toBe("generic");
    expect(classifyDeployFailure(failed("time-out during deployment"), [])).toBe("generic");
  });

  it("considers only the events of the newest attempt", () => {
    const earlier = events("Deploying", "Rebooting", "Deploying", "Installing OS");
    expect(classifyDeployFailure(failed("time-out during deployment"), earlier)).toBe("generic");
  });
});

describe("deployedSeries", () => {
  it.each([
    ["ubuntu/noble", "ubuntu/noble"],
    ["noble", "ubuntu/noble"],
    ["gpuaas-noble-v3", "custom/gpuaas-noble-v3"],
    ["custom/other", "custom/other"],
  ])("sends %s as %s", (name, sent) => expect(deployedSeries(name)).toBe(sent));
});

describe("ipv4", () => {
  it.each([
    ["172.30.9.61/31", "172.30.9.60/31"],
    ["172.29.1.219/31", "172.29.1.218/31"],
    ["255.255.255.255/1", "128.0.0.0/1"],
    ["10.1.2.3/0", "0.0.0.0/0"],
    ["10.1.2.3/32", "10.1.2.3/32"],
  ])("finds the network of %s", (cidr, network) => expect(networkOf(cidr)).toBe(network));
  it("returns the address without its prefix length", () => expect(addressOf("10.1.2.3/24")).toBe("10.1.2.3"));
});

describe("hardwareSyncIsHealthy", () => {
  const at = (seconds: number): Date => new Date(1_700_000_000_000 + seconds * 1000);
  const facts = { enableHwSync: true, lastSync: at(10), syncIntervalSeconds: 900 };

  it("counts only a sync after the time stamp of the deploy", () => {
    expect(hardwareSyncIsHealthy({ ...facts, lastSync: at(0) }, at(0), at(20))).toBe(false);
    expect(hardwareSyncIsHealthy({ ...facts, lastSync: null }, at(0), at(20))).toBe(false);
    expect(hardwareSyncIsHealthy(facts, at(0), at(20))).toBe(true);
  });

  it("is unhealthy if the sync is late by half an interval or disabled, and healthy if MAAS does not show that", () => {
    expect(hardwareSyncIsHealthy(facts, at(0), at(10 + 1350))).toBe(true);
    expect(hardwareSyncIsHealthy(facts, at(0), at(10 + 1351))).toBe(false);
    expect(hardwareSyncIsHealthy({ ...facts, enableHwSync: false }, at(0), at(20))).toBe(false);
    expect(hardwareSyncIsHealthy({ ...facts, enableHwSync: null, syncIntervalSeconds: null }, at(0), at(9999))).toBe(
      true,
    );
  });
});

describe("siteBootstrap", () => {
  it("accepts only a URL with a checksum", () => {
    const sha256 = "a".repeat(64);
    const ref = `https://files.example/site-7.sh#sha256=${sha256}`;
    const url = "https://files.example/site-7.sh";
    expect(siteBootstrap(ref)).toEqual({ siteBootstrap: { ref: url, url, sha256 } });
    const signed = `${url}?X-Signature=secret&a=/b?c`;
    expect(siteBootstrap(`${signed}#sha256=${sha256}`)).toEqual({ siteBootstrap: { ref: url, url: signed, sha256 } });
    expect(siteBootstrap(null)).toEqual({});
    expect(() => siteBootstrap("https://files.example/site-7.sh")).toThrow(/sha256/);
  });
});

describe("OnboardState", () => {
  it("reads the state of other hub versions: unknown facts are dropped, and new facts are optional (decision W3)", () => {
    const older = { maas_system_id: "abc123", generation: 2, deploy_intent: null, of_an_older_version: [1] };
    expect(OnboardState.parse(older)).toEqual({ maas_system_id: "abc123", generation: 2, deploy_intent: null });
    expect(OnboardState.parse({})).toEqual({});
  });
});
