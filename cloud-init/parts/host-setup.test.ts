import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HostFolder, sampleInput, sampleValues } from "../part.fixture.ts";
import { roceLink } from "./roce-routing.ts";

// Each test starts real shells, which take long on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

let folder: HostFolder;
beforeEach(() => {
  folder = new HostFolder();
  folder.tool("systemctl");
});
afterEach(() => folder.remove());

describe("hardware sync", () => {
  const PART = "30-hardware-sync.sh";
  const facts = () => JSON.parse(folder.read("var/lib/muster/hardware-sync.json"));

  it("changes none of MAAS's files, limits the service's time, and records what exists", async () => {
    folder.tool("wget");
    folder.tool("python3");
    const theirs = [
      "lib/systemd/system/maas_hardware_sync.timer",
      "lib/systemd/system/maas_hardware_sync.service",
      "etc/maas/maas-machine-creds.yml",
    ];
    for (const file of theirs) folder.write(file, `theirs: ${file}\n`);
    const cloud =
      "datasource:\n  MAAS: {consumer_key: ck, metadata_url: 'http://10.0.0.2:5248/MAAS/metadata/', token_key: tk, token_secret: hunter2}\n";
    folder.write("etc/cloud/cloud.cfg.d/90_dpkg_maas.cfg", cloud);
    const run = await folder.run(PART, sampleInput());
    expect(run.code).toBe(0);
    expect(theirs.map((file) => folder.read(file))).toEqual(theirs.map((file) => `theirs: ${file}\n`));
    expect(folder.read("etc/systemd/system/maas_hardware_sync.service.d/50-muster.conf")).toContain("TimeoutStartSec=");
    expect(facts()).toEqual({
      maas_url: "http://10.0.0.2:5248/MAAS",
      interval_seconds: 900,
      timer_unit: true,
      service_unit: true,
      credentials: true,
      missing_tools: "",
    });
    expect(JSON.stringify([run, facts()])).not.toContain("hunter2");
    expect(folder.calls()).toEqual(["systemctl daemon-reload"]);
  });

  it("names the tools that cannot be installed, and uses the hub's MAAS address when the host has none", async () => {
    folder.tool("python3");
    folder.tool("apt-get", "exit 100");
    expect(await folder.run(PART, sampleInput())).toMatchObject({
      code: 3,
      status: { exit_code: 3, message: expect.stringContaining("needs wget") },
    });
    expect(facts()).toMatchObject({
      maas_url: "http://region.test:5240/MAAS",
      timer_unit: false,
      credentials: false,
      missing_tools: "wget",
    });
  });
});

describe("RoCE routing", () => {
  const PART = "50-roce-routing.sh";

  it.each([
    ["10.1.0.0/31", "10.1.0.0/31", "10.1.0.1"],
    ["10.1.0.1/31", "10.1.0.0/31", "10.1.0.0"],
    ["10.1.0.6/30", "10.1.0.4/30", "10.1.0.5"],
    ["10.1.0.7/24", "10.1.0.0/24", null],
    ["255.255.255.255/31", "255.255.255.254/31", "255.255.255.254"],
    ["10.1.0.7/32", "10.1.0.7/32", null],
  ])("%s belongs to %s and has the peer %s", (cidr, network, peer) => {
    expect(roceLink(cidr)).toEqual({ address: cidr.split("/")[0], network, peer });
  });

  it("installs table, script and unit, and starts the unit, also in a second run", async () => {
    const input = sampleInput();
    for (const _ of [1, 2]) expect((await folder.run(PART, input)).code).toBe(0);
    expect(folder.read("etc/muster/roce-routing.conf").split("\n")[1]).toBe(
      "4200 ens1f0np0 02:00:00:00:00:01 10.1.0.0/31 10.1.0.0 10.1.0.0/31 10.1.0.1",
    );
    expect(statSync(folder.path("usr/local/sbin/muster-roce-routing")).mode & 0o777).toBe(0o755);
    expect(folder.read("etc/systemd/system/muster-roce-routing.service")).toContain("PartOf=systemd-networkd.service");
    expect(folder.calls().slice(0, 3)).toEqual([
      "systemctl daemon-reload",
      "systemctl enable muster-roce-routing.service",
      "systemctl restart muster-roce-routing.service",
    ]);
  });

  it("finds the interface by its MAC under another name, and reports a missing one after configuring the others", async () => {
    const roce = {
      assignments: [
        { interface: "gone0", ipv4Cidr: "10.1.0.2/31", mac: "02:00:00:00:00:09" },
        { interface: "old0", ipv4Cidr: "10.1.0.0/31", mac: "02:00:00:00:00:01" },
      ],
    };
    await folder.run(PART, sampleInput({ roce }));
    folder.write("net/new0/address", "02:00:00:00:00:01\n");
    folder.write("net/new0/device", "");
    folder.write("net/old0/address", "02:00:00:00:00:77\n");
    folder.tool(
      "ip",
      'case "$*" in *"rule show") printf "0:\\tfrom all lookup local\\n4207:\\tfrom 9.9.9.9 lookup 4207\\n32766:\\tx\\n";; esac',
    );
    const result = spawnSync(folder.path("usr/local/sbin/muster-roce-routing"), {
      encoding: "utf8",
      env: {
        PATH: `${folder.path("usr/bin")}:${process.env["PATH"]}`,
        MUSTER_ROCE_TABLE: folder.path("etc/muster/roce-routing.conf"),
        MUSTER_SYS_NET: folder.path("net"),
      },
    });
    expect(result.status).toBe(1);
    expect(result.stderr).toContain("no interface gone0 with MAC 02:00:00:00:00:09");
    expect(folder.calls().filter((call) => call.startsWith("ip "))).toEqual([
      "ip -4 rule show",
      "ip -4 rule del priority 4207",
      "ip link set dev new0 up",
      "ip -4 -o addr show dev new0",
      "ip -4 addr add 10.1.0.0/31 dev new0",
      "ip -4 route replace 10.1.0.0/31 dev new0 src 10.1.0.0 scope link table 4201",
      "ip -4 route replace default via 10.1.0.1 dev new0 src 10.1.0.0 table 4201",
      "ip -4 rule add from 10.1.0.0/32 lookup 4201 priority 4201",
    ]);
  });
});

describe("deploy user", () => {
  const PART = "60-deploy-user.sh";
  const user = sampleValues().deployUser;
  if (user === undefined) throw new Error("the sample has a deploy user");
  const sudoers = "etc/sudoers.d/90-muster-hpcadmin";
  beforeEach(() => {
    folder.tool("useradd", 'echo "hpcadmin:x:1000:" >>"$root/etc/passwd"');
    folder.tool("chpasswd", 'cat >"$root/password"');
    folder.tool("visudo");
    folder.write("etc/passwd", "root:x:0:\n");
  });

  it("creates the user once, with the hash on standard input, sudo and keys", async () => {
    folder.write("home/hpcadmin/.ssh/authorized_keys", "ssh-rsa BBBB theirs");
    for (const _ of [1, 2])
      expect(await folder.run(PART, sampleInput())).toMatchObject({ code: 0, status: { exit_code: 0 } });
    expect(folder.calls().filter((call) => call.startsWith("useradd"))).toHaveLength(1);
    expect(folder.read("password")).toBe(`hpcadmin:${user.passwordHash}\n`);
    expect(folder.calls().join("\n")).not.toContain("$6$");
    expect(folder.read(sudoers)).toBe("hpcadmin ALL=(ALL:ALL) ALL\n");
    expect(statSync(folder.path(sudoers)).mode & 0o777).toBe(0o440);
    expect(folder.read("home/hpcadmin/.ssh/authorized_keys")).toBe(
      "ssh-rsa BBBB theirs\nssh-ed25519 AAAA someone's key $(id) `id`\n",
    );
  });

  it("removes the sudo rule when the input has no sudo", async () => {
    await folder.run(PART, sampleInput());
    await folder.run(PART, sampleInput({ deployUser: { ...user, sudo: false } }));
    expect(() => folder.read(sudoers)).toThrow();
  });

  it("installs no sudo rule that visudo refuses", async () => {
    folder.tool("visudo", "exit 1");
    expect(await folder.run(PART, sampleInput())).toMatchObject({
      code: 1,
      status: { message: expect.stringContaining("visudo refused") },
    });
    expect(() => folder.read(sudoers)).toThrow();
  });

  it("writes no keys through a link that the user created", async () => {
    folder.write("elsewhere/file", "");
    folder.write("home/hpcadmin/file", "");
    spawnSync("ln", ["-s", folder.path("elsewhere"), folder.path("home/hpcadmin/.ssh")]);
    expect((await folder.run(PART, sampleInput())).code).toBe(1);
    expect(() => folder.read("elsewhere/authorized_keys")).toThrow();
  });
});
