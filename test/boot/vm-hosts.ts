import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Region } from "../fakes/maas/engine/region.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import type { BootImage } from "./image/boot-image.ts";
import { filesOfInstaller } from "./installer-files.ts";
import type { Lane } from "./lane.ts";
import { GUEST_GATEWAY, VmHost } from "./vm-host.ts";
import { SHELL_UNIT, SHELL_WANTED } from "./vm-shell.ts";

/** Boots the machines that a simulated region deploys, as virtual machines, and obeys its power calls. */
export class VmHosts implements Lane {
  readonly listen = "127.0.0.1";
  readonly reach = GUEST_GATEWAY;
  readonly #folder: string;
  readonly #image: BootImage;
  readonly #hosts = new Map<string, VmHost>();
  #last: Promise<void> = Promise.resolve();
  readonly #failing = new AbortController();
  readonly failed = this.#failing.signal;

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
          const network = { match: { macaddress: host.mac }, "set-name": PXE_NIC, dhcp4: true };
          await host.install([...filesOfInstaller(machine, maasUrl, network), SHELL_UNIT, SHELL_WANTED]);
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
    const known = this.#hosts.get(hostname) ?? new VmHost(this.#folder, this.#image, hostname, mac);
    this.#hosts.set(hostname, known);
    return known;
  }

  async stop(): Promise<void> {
    await this.#last;
    await Promise.all([...this.#hosts.values()].map((host) => host.powerCut()));
  }

  #enqueue(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch((error: unknown) => {
      this.#failing.abort(error);
    });
  }
}
