import { spawn } from "node:child_process";
import { existsSync, mkdirSync, openSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { until } from "../support/until.ts";
import type { BootImage } from "./image/boot-image.ts";

export const BASE = "base";

export class Lxd {
  readonly #folder: string;
  readonly gateway: string;
  readonly network: string;
  /** The range of IP addresses that DHCP gives to containers. MAAS may assign all addresses of the bridge's network outside DHCP's range. */
  readonly dhcp: { readonly first: string; readonly last: string };
  readonly bridge: string;

  private constructor(folder: string, bridge: string, prefix: string) {
    this.#folder = folder;
    this.bridge = bridge;
    this.gateway = `${prefix}.1`;
    this.network = `${prefix}.0/24`;
    this.dhcp = { first: `${prefix}.200`, last: `${prefix}.254` };
  }

  static async start(folder: string, bridge: string, image: BootImage): Promise<Lxd> {
    mkdirSync(join(folder, "client"), { recursive: true });
    const log = openSync(join(folder, "lxd.log"), "a");
    const daemon = spawn("lxd", ["--group", "root"], {
      env: { ...process.env, LXD_DIR: folder },
      stdio: ["ignore", log, log],
      detached: true,
    });
    const lxd = new Lxd(folder, bridge, await freeNetwork());
    await until("LXD answers", async () => {
      if (daemon.exitCode !== null) throw new Error(`lxd ended with ${daemon.exitCode}; read ${folder}/lxd.log`);
      return existsSync(join(folder, "unix.socket")) ? await lxd.lxc("list", "--format", "csv") : undefined;
    });
    const preseed = {
      storage_pools: [{ name: "default", driver: "dir" }],
      profiles: [{ name: "default", devices: { root: { path: "/", pool: "default", type: "disk" } } }],
    };
    await execa("lxd", ["init", "--preseed"], { env: lxd.#env(), input: JSON.stringify(preseed) });
    await lxd.lxc("image", "import", image.metadata, image.rootfs, "--alias", BASE);
    const settings = [`ipv4.address=${lxd.gateway}/24`, "ipv4.nat=false", "ipv4.dhcp=true", "ipv6.address=none"];
    settings.push(`ipv4.dhcp.ranges=${lxd.dhcp.first}-${lxd.dhcp.last}`);
    // The containers have no outside network, so the bridge's DNS server refuses outside names at once.
    await lxd.lxc("network", "create", bridge, ...settings, "raw.dnsmasq=no-resolv");
    return lxd;
  }

  #env(): Record<string, string> {
    return { LXD_DIR: this.#folder, LXD_CONF: join(this.#folder, "client") };
  }

  async lxc(...words: string[]): Promise<string> {
    return (await execa("lxc", words, { env: this.#env(), timeout: 120_000, stdin: "ignore" })).stdout;
  }

  /**
   * Runs a command in a container and returns the command's exit status, or 1 when the container does not run. `run` starts the command by `nsenter`,
   * because `lxc exec` on a busy computer sometimes loses the output of a short command.
   */
  async run(container: string, command: readonly string[], input = "") {
    const state = JSON.parse(await this.lxc("query", `/1.0/instances/${container}/state`)) as { pid: number };
    const enter =
      state.pid > 0
        ? ["--target", String(state.pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"]
        : null;
    if (enter === null) return { exitCode: 1, stdout: "", stderr: `${container} does not run` };
    const environment = [
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "HOME=/root",
      "USER=root",
    ];
    return execa("nsenter", [...enter, "env", "-i", ...environment, "LANG=C.UTF-8", ...command], {
      input,
      reject: false,
      timeout: 120_000,
    });
  }

  async stop(): Promise<void> {
    for (const name of (await this.lxc("list", "--format", "csv", "-c", "n")).split("\n").filter((one) => one !== ""))
      await this.lxc("delete", "--force", name);
    await this.lxc("network", "delete", this.bridge);
    await execa("lxd", ["shutdown", "--timeout", "30"], { env: this.#env() });
  }
}

/**
 * Returns the first three numbers of an IPv4 network in which this computer has no address. Concurrent runs of the boot suite begin their search for
 * a free network at different networks.
 */
async function freeNetwork(): Promise<string> {
  const taken = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map((one) => one.address));
  for (let tried = 0; tried < 254; tried += 1) {
    const network = `10.231.${1 + ((process.pid + tried) % 254)}`;
    if (!taken.some((address) => address.startsWith(`${network}.`))) return network;
  }
  throw new Error("no network of 10.231.0.0/16 is free");
}
