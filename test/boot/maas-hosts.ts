import type { Region } from "../fakes/maas/engine/region.ts";
import { datasourceFile } from "../fakes/maas/host/vendor-data.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import { ContainerHost, type HostFile } from "./container-host.ts";
import type { Lxd } from "./lxd.ts";

/** Changes a machine as its installer leaves it, before its system starts for the first time. */
export type Prepare = (host: ContainerHost, machine: Machine) => Promise<void>;

/** Boots the machines that a simulated region deploys, as containers, and obeys its power calls. */
export class ContainerHosts {
  readonly #lxd: Lxd;
  readonly #scratch: string;
  readonly #maasUrl: () => string;
  readonly #hosts = new Map<string, ContainerHost>();
  /** What happens to a host happens one after the other. */
  #last: Promise<void> = Promise.resolve();
  /** The first thing that went wrong. */
  #failure: Error | null = null;
  prepare: Prepare = async () => undefined;

  constructor(lxd: Lxd, scratch: string, maasUrl: () => string) {
    this.#lxd = lxd;
    this.#scratch = scratch;
    this.#maasUrl = maasUrl;
  }

  attach(region: Region): void {
    region.hooks = {
      boot: (machine) =>
        this.#enqueue(async () => {
          const host = this.of(machine.hostname);
          await host.install(
            machine.interfaces.map(({ name, macAddress }) => ({ name, mac: macAddress, onBridge: name === PXE_NIC })),
            filesOfInstaller(machine, this.#maasUrl()),
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

  of(hostname: string): ContainerHost {
    const known = this.#hosts.get(hostname) ?? new ContainerHost(this.#lxd, this.#scratch, hostname);
    this.#hosts.set(hostname, known);
    return known;
  }

  /** Waits for what was begun; throws what failed. */
  async settle(): Promise<void> {
    await this.#last;
    if (this.#failure !== null) throw this.#failure;
  }

  #enqueue(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch((error: unknown) => {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
    });
  }
}

/** What the installer leaves in the new system's root: where its region is, and its network. */
function filesOfInstaller(machine: Machine, maasUrl: string): HostFile[] {
  const datasource = datasourceFile(machine, maasUrl);
  if (datasource === null || machine.token === null) throw new Error(`${machine.hostname} has no token to boot with`);
  const { consumer_key, token_key, token_secret } = machine.token;
  const endpoint = `${maasUrl}/metadata/status/${machine.systemId}`;
  const reporting = { maas: { type: "webhook", endpoint, consumer_key, token_key, token_secret } };
  const network = { version: 2, ethernets: { [PXE_NIC]: { dhcp4: true } } };
  return [
    {
      path: datasource.path,
      mode: datasource.mode,
      content: `datasource_list: [ MAAS ]\n${datasource.content}reporting: ${JSON.stringify(reporting)}\n`,
    },
    {
      path: "etc/cloud/cloud.cfg.d/50-curtin-networking.cfg",
      mode: 0o600,
      content: `network: ${JSON.stringify(network)}\n`,
    },
  ];
}
