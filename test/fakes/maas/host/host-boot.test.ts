import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SampleClient } from "../sample-client.ts";
import type { MaasSimulator, MaasSimulatorOptions } from "../simulator.ts";
import { startMaasSimulator } from "../simulator.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "../state/site.ts";

let folder: string;
let simulator: MaasSimulator;
let client: SampleClient;

async function start(more: MaasSimulatorOptions = {}): Promise<void> {
  simulator = await startMaasSimulator({
    machines: 1,
    speed: 400,
    hostsDir: join(folder, "hosts"),
    stateFile: join(folder, "state.json"),
    ...more,
  });
  client = new SampleClient(simulator);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "simulated-host-"));
});

afterEach(async () => {
  await simulator.close();
  rmSync(folder, { recursive: true, force: true });
});

const AGENT = `#!/bin/bash
set -eu
cat > "$MUSTER_ROOT/usr/bin/beat" <<'SCRIPT'
#!/bin/sh
echo "$GREETING" >> "$MUSTER_ROOT/var/lib/beats"
echo "$$" > "$MUSTER_ROOT/run/beat.new"
mv "$MUSTER_ROOT/run/beat.new" "$MUSTER_ROOT/run/beat.pid"
exec sleep 600
SCRIPT
chmod 755 "$MUSTER_ROOT/usr/bin/beat"
printf 'GREETING="from a file"\\n' > "$MUSTER_ROOT/etc/beat.env"
cat > "$MUSTER_ROOT/etc/systemd/system/beat.service" <<'UNIT'
[Service]
EnvironmentFile=/etc/beat.env
ExecStart=/usr/bin/beat
Restart=always
UNIT
"$MUSTER_ROOT/usr/bin/systemctl" daemon-reload
"$MUSTER_ROOT/usr/bin/systemctl" enable --now beat.service
`;

function userData(script: string): string {
  const parts = [
    ["10-other.sh", "text/x-shellscript", '#!/bin/sh\ntouch "$MUSTER_ROOT/other-ran"\n'],
    ["20-agent-bootstrap.sh", "text/x-shellscript", script],
    ["00-cloud-config.yaml", "text/cloud-config", "#cloud-config\n{}\n"],
  ] as const;
  const bodies = parts.map(
    ([name, type, content]) =>
      `--line\nContent-Type: ${type}; charset="utf-8"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename="${name}"\n\n${Buffer.from(content).toString("base64")}`,
  );
  const message = `Content-Type: multipart/mixed; boundary="line"\nMIME-Version: 1.0\n\n${bodies.join("\n")}\n--line--\n`;
  return Buffer.from(message).toString("base64");
}

/** Deploys the only simulated server, and returns the id of the server's machine. */
async function deployOne(script = AGENT): Promise<string> {
  const machine = await client.get<{ system_id: string }>("POST", "machines/", {
    hostname: "gpu1",
    architecture: "amd64/generic",
    power_type: "ipmi",
    power_parameters_power_address: bmcAddress(1),
    power_parameters_power_user: SITE_BMC_USER,
    power_parameters_power_pass: SITE_BMC_PASSWORD,
    testing_scripts: "none",
  });
  await client.waitForStatus(machine.system_id, 4);
  await client.get("POST", `machines/${machine.system_id}/?op=deploy`, {
    user_data: userData(script),
    enable_hw_sync: "true",
  });
  await client.waitForStatus(machine.system_id, 6);
  return machine.system_id;
}

function root(): string {
  return join(folder, "hosts", "gpu1");
}

async function beating(): Promise<number> {
  const pid = await client.waitFor("the agent's process", () =>
    existsSync(join(root(), "run/beat.pid"))
      ? Number(readFileSync(join(root(), "run/beat.pid"), "utf8")) || null
      : null,
  );
  expect(isAlive(pid)).toBe(true);
  return pid;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("a deployed machine boots", () => {
  test("a chosen part of the user data runs, and its unit restarts after a kill", async () => {
    await start();
    const id = await deployOne();
    const pid = await beating();
    expect(readFileSync(join(root(), "var/lib/beats"), "utf8")).toBe("from a file\n");
    expect(existsSync(join(root(), "other-ran"))).toBe(false);
    expect(statSync(join(root(), "etc/maas/maas-machine-creds.yml")).mode & 0o777).toBe(0o700);
    const hosts = await client.waitFor("the end of the first boot", async () => {
      const all = await client.control<
        { firstBootDone: boolean; parts: { filename: string; run: boolean; exitStatus: number | null }[] }[]
      >("GET", "hosts");
      return all[0]?.firstBootDone === true ? all : null;
    });
    expect(hosts[0]?.parts.find((part) => part.filename === "20-agent-bootstrap.sh")).toMatchObject({
      run: true,
      exitStatus: 0,
    });
    expect(hosts[0]?.parts.find((part) => part.filename === "10-other.sh")).toMatchObject({
      run: false,
      exitStatus: null,
    });

    process.kill(pid, "SIGKILL");
    await client.waitFor("the unit's restart", () =>
      Number(readFileSync(join(root(), "run/beat.pid"), "utf8")) !== pid ? true : null,
    );

    const second = Number(readFileSync(join(root(), "run/beat.pid"), "utf8"));
    await client.get("POST", `machines/${id}/?op=release`);
    await client.waitForStatus(id, 4);
    await client.waitFor("the host's end", () => (existsSync(root()) || isAlive(second) ? null : true));
  });

  test("hardware sync reaches the region with the machine's own token", async () => {
    await start();
    const id = await deployOne(`#!/bin/bash\n"$MUSTER_ROOT/usr/bin/systemctl" start maas_hardware_sync.service\n`);
    const counted = await client.waitFor("the sync", async () => {
      const { machines } = await client.control<{ machines: Record<string, { sync: number; boot: number }> }>(
        "GET",
        "counters",
      );
      return machines[id] !== undefined && machines[id].sync > 0 ? machines[id] : null;
    });
    expect(counted.boot).toBe(1);
    const machine = simulator.sim.region.machine(id);
    expect(machine.lastSync).toBeGreaterThan(machine.deployedAt ?? Number.POSITIVE_INFINITY);
    // The machine stays Deployed, because its host has signalled only `WORKING` to MAAS. By the host's signal `WORKING`, the boot interface's link to
    // its subnet has become STATIC.
    expect(machine).toMatchObject({ status: 6, owner: "admin" });
    const links = () => machine.interfaces.find((nic) => nic.id === machine.bootInterfaceId)?.links;
    const kept = [{ mode: "static", ipAddress: expect.stringMatching(/^10\.81\./) }];
    expect(links()).toMatchObject(kept);
    await client.get("POST", `machines/${id}/?op=release`);
    await client.waitForStatus(id, 4);
    expect(links()).toMatchObject(kept);
  });

  test("hardware sync fails while the region's files are missing", async () => {
    await start({ omitHwSyncFiles: true });
    await deployOne(`#!/bin/bash\n"$MUSTER_ROOT/usr/bin/systemctl" start maas_hardware_sync.service\n`);
    const parts = await client.waitFor("the end of the first boot", async () => {
      const all = await client.control<
        { firstBootDone: boolean; parts: { filename: string; exitStatus: number | null }[] }[]
      >("GET", "hosts");
      return all[0]?.firstBootDone === true ? all[0].parts : null;
    });
    expect(parts.find((part) => part.filename === "20-agent-bootstrap.sh")?.exitStatus).toBe(1);
    expect(existsSync(join(root(), "etc/maas"))).toBe(false);
  });

  test("after a restart of the simulator the host starts again with its enabled units and a new boot id", async () => {
    await start();
    await deployOne();
    const first = await beating();
    await client.waitFor("the end of the first boot", async () =>
      (await client.control<{ firstBootDone: boolean }[]>("GET", "hosts"))[0]?.firstBootDone === true ? true : null,
    );
    const bootId = readFileSync(join(root(), "proc/sys/kernel/random/boot_id"), "utf8");
    const port = Number(new URL(simulator.url).port);
    await simulator.close();
    expect(isAlive(first)).toBe(false);
    rmSync(join(root(), "run/beat.pid"));
    await start({ port });
    await beating();
    expect(readFileSync(join(root(), "proc/sys/kernel/random/boot_id"), "utf8")).not.toBe(bootId);
    const { machines } = await client.control<{ machines: Record<string, { deploy: number; boot: number }> }>(
      "GET",
      "counters",
    );
    expect(Object.values(machines)).toMatchObject([{ deploy: 1, boot: 1 }]);
  });
});
