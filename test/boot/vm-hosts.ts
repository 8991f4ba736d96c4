import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Region } from "../fakes/maas/engine/region.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import type { HostFile } from "./container-host.ts";
import type { BootImage } from "./image/boot-image.ts";
import { filesOfInstaller } from "./installer-files.ts";
import type { Lane } from "./lane.ts";
import { GUEST_GATEWAY, VmHost } from "./vm-host.ts";
import { SHELL_UNIT, SHELL_WANTED } from "./vm-shell.ts";

/** Changes a virtual machine before the installation of a new operating system, and returns additional files for the new system. */
export type PrepareVm = (host: VmHost) => Promise<HostFile[]>;

/** Boots the machines that a simulated MAAS region deploys as virtual machines, and carries out the region's power calls. */
export class VmHosts implements Lane {
  readonly listen = "127.0.0.1";
  readonly reach = GUEST_GATEWAY;
  readonly #folder: string;
  readonly #image: BootImage;
  readonly #hosts = new Map<string, VmHost>();
  readonly #kept: VmHost[] = [];
  #last: Promise<void> = Promise.resolve();
  readonly #failing = new AbortController();
  readonly failed = this.#failing.signal;
  prepare: PrepareVm = async () => [];

  private constructor(folder: string, image: BootImage) {
    this.#folder = folder;
    this.#image = image;
  }

  static async start(folder: string, image: BootImage): Promise<VmHosts> {
    const own = join(folder, "vms");
    mkdirSync(own);
    return new VmHosts(own, image);
  }

  attach(region: Region, maasUrl: string): void {
    region.hooks = {
      boot: (machine) =>
        this.#enqueue(async () => {
          const host = this.of(machine);
          await host.powerCut();
          const network = {
            match: { macaddress: host.mac },
            "set-name": PXE_NIC,
            dhcp4: true,
          };
          const more = await this.prepare(host);
          await host.install([...filesOfInstaller(machine, maasUrl, network), SHELL_UNIT, SHELL_WANTED, ...more]);
          region.count(machine.systemId, "boot");
          host.start();
        }),
      halt: (machine) => this.#enqueue(() => this.of(machine).powerCut()),
      resume: (machine) =>
        this.#enqueue(async () => {
          if (!this.of(machine).isRunning) this.of(machine).start();
        }),
    };
  }

  of({ hostname, interfaces }: Pick<Machine, "hostname" | "interfaces">): VmHost {
    const mac = interfaces.find((nic) => nic.name === PXE_NIC)?.macAddress ?? "";
    const known = this.#hosts.get(hostname) ?? this.#make(hostname, mac);
    this.#hosts.set(hostname, known);
    return known;
  }

  /** The name of a virtual machine's folder is a number, because a hostname may be too long for the path of a socket. */
  #make = (hostname: string, mac: string): VmHost =>
    new VmHost(join(this.#folder, String(this.#hosts.size + 1)), this.#image, hostname, mac);

  /** Cuts a virtual machine's power, and returns a copy of the machine's operating system. */
  async keepSystem(host: VmHost): Promise<VmHost> {
    await host.powerCut();
    const kept = await host.keepSystem();
    this.#kept.push(kept);
    return kept;
  }

  async stop(): Promise<void> {
    await this.#last;
    await Promise.all([...this.#hosts.values(), ...this.#kept].map((host) => host.powerCut()));
  }

  #enqueue(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch((error: unknown) => {
      this.#failing.abort(error);
    });
  }
}
