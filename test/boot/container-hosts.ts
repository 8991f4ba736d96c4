import { join } from "node:path";
import type { Region } from "../fakes/maas/engine/region.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import { bridgeOf } from "./boot-run.ts";
import { ContainerHost } from "./container-host.ts";
import type { BootImage } from "./image/boot-image.ts";
import { filesOfInstaller } from "./installer-files.ts";
import type { Lane } from "./lane.ts";
import { Lxd } from "./lxd.ts";

/** Changes a container after its installation and before its first boot. */
export type Prepare = (host: ContainerHost, machine: Machine) => Promise<void>;

/** Boots the machines that a simulated MAAS region deploys as containers, and carries out the region's power calls. */
export class ContainerHosts implements Lane {
  readonly #lxd: Lxd;
  readonly #scratch: string;
  readonly listen: string;
  readonly reach: string;
  #bare = 0;
  readonly #hosts = new Map<string, ContainerHost>();
  /** The end of the newest operation on a container, for which the next operation waits. */
  #last: Promise<void> = Promise.resolve();
  readonly #failing = new AbortController();
  readonly failed = this.#failing.signal;
  prepare: Prepare = async () => undefined;

  private constructor(lxd: Lxd, scratch: string) {
    this.#lxd = lxd;
    this.#scratch = scratch;
    this.listen = lxd.gateway;
    this.reach = lxd.gateway;
  }

  static async start(scratch: string, image: BootImage): Promise<ContainerHosts> {
    return new ContainerHosts(await Lxd.start(join(scratch, "lxd"), bridgeOf(scratch), image), scratch);
  }

  stop = (): Promise<void> => this.#lxd.stop();

  attach(region: Region, maasUrl: string): void {
    this.#layNetwork(region);
    region.hooks = {
      boot: (machine) =>
        this.#enqueue(async () => {
          const host = this.of(machine.hostname);
          await host.install(
            machine.interfaces.map(({ name, macAddress }) => ({ name, mac: macAddress, onBridge: name === PXE_NIC })),
            filesOfInstaller(machine, maasUrl, this.#networkOf(machine)),
          );
          await this.prepare(host, machine);
          region.count(machine.systemId, "boot");
          await host.start();
        }),
      halt: (machine, wipe) =>
        this.#enqueue(async () => {
          const host = this.of(machine.hostname);
          if (wipe) await host.remove();
          else if (await host.isRunning()) await host.powerCut();
        }),
      resume: (machine) =>
        this.#enqueue(async () => {
          const host = this.of(machine.hostname);
          if (!(await host.isRunning())) await host.start();
        }),
    };
  }

  /** Gives the simulated region the bridge's network, so that each container has the address that MAAS shows. */
  #layNetwork({ state }: Region): void {
    const subnet = state.subnets.find((one) => one.name === "pxe");
    const range = state.ipRanges.find((one) => one.subnetId === subnet?.id && one.type === "dynamic");
    if (subnet === undefined || range === undefined) throw new Error("the region has no PXE network");
    Object.assign(subnet, { cidr: this.#lxd.network, gatewayIp: this.#lxd.gateway, dnsServers: [this.#lxd.gateway] });
    Object.assign(range, { startIp: this.#lxd.dhcp.first, endIp: this.#lxd.dhcp.last });
  }

  #networkOf(machine: Machine): object {
    const nic = machine.interfaces.find(({ name }) => name === PXE_NIC);
    const address = nic?.links.find((link) => link.ipAddress !== null)?.ipAddress;
    if (address === undefined) throw new Error(`the region gave ${machine.hostname} no address`);
    return { addresses: [`${address}/24`], nameservers: { addresses: [this.#lxd.gateway] } };
  }

  of(hostname: string): ContainerHost {
    const known = this.#hosts.get(hostname) ?? new ContainerHost(this.#lxd, this.#scratch, hostname);
    this.#hosts.set(hostname, known);
    return known;
  }

  /** Makes a host without MAAS, for example for manual mode. A host without MAAS has a working network, and its cloud-init finds no datasource. */
  async bare(name: string): Promise<ContainerHost> {
    const host = this.of(name);
    this.#bare += 1;
    // A MAC address that its manufacturer gave: the hub takes no other one as a proof of which host an agent runs on.
    const mac = `00:16:3e:00:00:${this.#bare.toString(16).padStart(2, "0")}`;
    const nic = { name: PXE_NIC, mac, onBridge: true };
    const network = { version: 2, ethernets: { [PXE_NIC]: { dhcp4: true } } };
    await host.install(
      [nic],
      [
        { path: "etc/cloud/cloud.cfg.d/90-none.cfg", mode: 0o644, content: "datasource_list: [ None ]\n" },
        {
          path: "etc/cloud/cloud.cfg.d/50-network.cfg",
          mode: 0o644,
          content: `network: ${JSON.stringify(network)}\n`,
        },
      ],
    );
    await host.start();
    await host.bootEnded();
    return host;
  }

  #enqueue(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch((error: unknown) => {
      this.#failing.abort(error);
    });
  }
}
