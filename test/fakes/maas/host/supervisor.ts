import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Region } from "../engine/region.ts";
import type { UnitAction, UnitSupervisor } from "../http/control.ts";
import type { HostRecord, Machine } from "../state/model.ts";
import { STATUS } from "../state/statuses.ts";
import { HW_SYNC_SERVICE, machineAuthorization, ownInterval, syncHardware } from "./hardware-sync.ts";
import type { UnitAnswer } from "./host.ts";
import { SimulatedHost } from "./host.ts";
import { installImage, newBoot, tellSupervisor } from "./image.ts";
import { SshDoor } from "./ssh-door.ts";
import type { UserDataPart } from "./user-data.ts";
import { unpackUserData } from "./user-data.ts";

export interface SupervisorOptions {
  region: Region;
  hostsDir: string;
  /** Names of the user-data parts that a simulated host runs, or `all` for every part. */
  runParts: readonly string[];
  omitHwSyncFiles: boolean;
  ownLinux: readonly string[];
  /** The hostnames of hosts without GPUs; every other simulated host has eight of AMD. */
  withoutGpus: readonly string[];
  /** True if a host that is up greets at port 22 of its address as an SSH server. */
  ssh: boolean;
  /** Environment variables of every process on a host. */
  environment: Readonly<Record<string, string>>;
}

const RESTART_DELAY_S = 1;
/**
 * The minimum pause, in milliseconds of real time, before a simulated host restarts a systemd unit. Without a pause before the restart, a unit that
 * cannot start would use up the processor.
 */
const MIN_RESTART_DELAY_MS = 250;
const SCRIPTS = "var/lib/cloud/instance/scripts";
const OUTPUT_LOG = "var/log/cloud-init-output.log";

export class HostSupervisor implements UnitSupervisor {
  readonly #options: SupervisorOptions;
  readonly #hosts = new Map<string, SimulatedHost>();
  readonly #doors = new Map<string, SshDoor>();
  readonly #queues = new Map<string, Promise<void>>();
  #origin = "";
  #closing = false;

  constructor(options: SupervisorOptions) {
    this.#options = { ...options, hostsDir: resolve(options.hostsDir) };
  }

  /** Sets the simulated region's hooks for hosts, and restarts the hosts that ran when the simulator ended. */
  start(origin: string): void {
    this.#origin = origin;
    const { region } = this.#options;
    region.hooks = {
      boot: (machine) => this.#enqueue(machine.systemId, () => this.#boot(machine)),
      halt: (machine, wipe) => {
        // A halt switches the simulated host's power off at once, even during a first boot. A halt removes the host's files only after all earlier
        // work on the host has ended.
        this.#closeDoor(machine.systemId);
        void this.#hosts.get(machine.systemId)?.halt();
        this.#enqueue(machine.systemId, () => this.#halt(machine.systemId, wipe));
      },
      resume: (machine) => this.#enqueue(machine.systemId, () => this.#resume(machine)),
    };
    for (const record of region.state.hosts) this.#host(record).killLeftovers();
    for (const machine of region.state.machines) this.#continue(machine);
  }

  async stop(): Promise<void> {
    this.#closing = true;
    for (const systemId of [...this.#doors.keys()]) this.#closeDoor(systemId);
    await Promise.all([...this.#hosts.values()].map((host) => host.halt()));
    await Promise.all(this.#queues.values());
  }

  async unit(systemId: string, action: UnitAction, unit: string): Promise<UnitAnswer> {
    const record = this.#record(systemId);
    const host = this.#hosts.get(systemId);
    if (record === undefined || host === undefined) return { code: 1, output: "The host is not running." };
    const answer = await this.#perform(host, record, action, unit);
    this.#options.region.changed();
    return answer;
  }

  describe(): unknown {
    return this.#options.region.state.hosts.map((record) => ({
      ...record,
      running: this.#hosts.has(record.systemId),
      active_units: record.knownUnits.filter((unit) => this.#hosts.get(record.systemId)?.isActive(unit) === true),
    }));
  }

  async #perform(host: SimulatedHost, record: HostRecord, action: UnitAction, unit: string): Promise<UnitAnswer> {
    if (!record.knownUnits.includes(unit)) record.knownUnits.push(unit);
    switch (action) {
      case "start":
        return host.start(unit);
      case "stop":
        await host.stop(unit);
        return { code: 0, output: "" };
      case "try-restart":
        if (!host.isActive(unit)) return { code: 0, output: "" };
        await host.stop(unit);
        return host.start(unit);
      case "restart":
      case "reload-or-restart":
        await host.stop(unit);
        return host.start(unit);
      case "enable":
        if (!record.enabledUnits.includes(unit)) record.enabledUnits.push(unit);
        return { code: 0, output: "" };
      case "disable":
        record.enabledUnits = record.enabledUnits.filter((one) => one !== unit);
        return { code: 0, output: "" };
      case "is-active":
        return host.isActive(unit) ? { code: 0, output: "active" } : { code: 3, output: "inactive" };
      case "is-enabled":
        return record.enabledUnits.includes(unit) ? { code: 0, output: "enabled" } : { code: 1, output: "disabled" };
    }
  }

  #record(systemId: string): HostRecord | undefined {
    return this.#options.region.state.hosts.find((one) => one.systemId === systemId);
  }

  #enqueue(systemId: string, work: () => Promise<void>): void {
    const before = this.#queues.get(systemId) ?? Promise.resolve();
    const next = before.then(work).catch((error: unknown) => {
      if (this.#closing) return;
      process.stderr.write(`Host of ${systemId}: ${error instanceof Error ? error.message : String(error)}\n`);
    });
    this.#queues.set(systemId, next);
  }

  #host(record: HostRecord): SimulatedHost {
    const { region, environment } = this.#options;
    return new SimulatedHost({
      root: record.root,
      environment,
      restartDelayMs: Math.max(MIN_RESTART_DELAY_MS, region.realMs(RESTART_DELAY_S)),
      timerMs: () => {
        const interval = ownInterval(record.root) ?? region.findMachine(record.systemId)?.syncInterval ?? null;
        return interval === null ? null : region.realMs(interval);
      },
      onTimer: async (service) => {
        if (service !== HW_SYNC_SERVICE) return;
        try {
          await syncHardware(record.root);
        } catch (error) {
          process.stderr.write(
            `Hardware sync of ${record.hostname}: ${error instanceof Error ? error.message : String(error)}\n`,
          );
        }
      },
    });
  }

  /**
   * After a restart of the simulator, a host repeats an interrupted first boot. After a restart of the simulator, a deployed host starts with the
   * system on its disk.
   */
  #continue(machine: Machine): void {
    const { region } = this.#options;
    const record = this.#record(machine.systemId);
    const installing = region.state.jobs.some(
      (job) => job.systemId === machine.systemId && job.kind.startsWith("deploy_"),
    );
    if (machine.status === STATUS.deploying && !installing) this.#enqueue(machine.systemId, () => this.#boot(machine));
    else if (record !== undefined && machine.status === STATUS.deployed && machine.powerState !== "off")
      this.#enqueue(machine.systemId, () => this.#resume(machine));
  }

  async #boot(machine: Machine): Promise<void> {
    const { region } = this.#options;
    if (this.#closing || machine.status !== STATUS.deploying) return;
    await this.#halt(machine.systemId, true);
    const root = join(this.#options.hostsDir, machine.hostname);
    const record: HostRecord = {
      systemId: machine.systemId,
      hostname: machine.hostname,
      root,
      firstBootDone: false,
      enabledUnits: [],
      knownUnits: [],
      parts: [],
    };
    const { omitHwSyncFiles } = this.#options;
    const ownLinux = this.#options.ownLinux.includes(machine.hostname);
    const hasGpus = !this.#options.withoutGpus.includes(machine.hostname);
    installImage({ machine, root, maasUrl: `${this.#origin}/MAAS`, omitHwSyncFiles, ownLinux, hasGpus });
    region.state.hosts.push(record);
    region.count(machine.systemId, "boot");
    region.changed();
    await this.#bringUp(machine, record);
  }

  async #resume(machine: Machine): Promise<void> {
    const record = this.#record(machine.systemId);
    if (this.#closing || record === undefined || this.#hosts.has(machine.systemId)) return;
    newBoot(record.root);
    await this.#bringUp(machine, record);
  }

  async #bringUp(machine: Machine, record: HostRecord): Promise<void> {
    const host = this.#host(record);
    host.killLeftovers();
    this.#hosts.set(machine.systemId, host);
    tellSupervisor(record.root, `${this.#origin}/_sim`, machine.systemId);
    for (const unit of record.enabledUnits) await host.start(unit);
    this.#openDoor(machine, host);
    if (!record.firstBootDone) await this.#firstBoot(machine, host, record);
  }

  #openDoor({ systemId, interfaces, bootInterfaceId }: Machine, host: SimulatedHost): void {
    const boot = interfaces.find(({ id }) => id === bootInterfaceId);
    const address = boot?.links.find(({ ipAddress }) => ipAddress !== null)?.ipAddress;
    const isUp = !this.#closing && this.#hosts.get(systemId) === host;
    if (this.#options.ssh && isUp && address != null) this.#doors.set(systemId, new SshDoor(address));
  }

  #closeDoor(systemId: string): void {
    this.#doors.get(systemId)?.close();
    this.#doors.delete(systemId);
  }

  /** Does the work of cloud-init on a simulated host: fetches the user data and runs the parts of the user data in order. */
  async #firstBoot(machine: Machine, host: SimulatedHost, record: HostRecord): Promise<void> {
    const { region } = this.#options;
    const parts = unpackUserData(await this.#fetchUserData(machine));
    if (machine.enableHwSync && !this.#options.omitHwSyncFiles) {
      await this.#perform(host, record, "start", "maas_hardware_sync.timer");
      await this.#perform(host, record, "enable", "maas_hardware_sync.timer");
    }
    record.parts = parts.map(({ filename, contentType }) => ({ filename, contentType, run: false, exitStatus: null }));
    for (const part of orderOfRun(parts)) {
      if (this.#closing || this.#hosts.get(machine.systemId) !== host) return;
      const noted = record.parts.find((one) => one.filename === part.filename);
      if (noted === undefined || !this.#mayRun(part)) continue;
      noted.run = true;
      noted.exitStatus = await runPart(host, part);
      region.changed();
    }
    if (this.#closing || this.#hosts.get(machine.systemId) !== host) return;
    record.firstBootDone = true;
    region.changed();
    region.flush();
  }

  #mayRun(part: UserDataPart): boolean {
    const { runParts } = this.#options;
    return runParts.includes("all") || runParts.includes(part.filename);
  }

  async #fetchUserData(machine: Machine): Promise<Buffer> {
    const { token } = machine;
    if (token === null) throw new Error("The machine has no token any more: it was released while it started.");
    const authorization = machineAuthorization({
      consumerKey: token.consumer_key,
      tokenKey: token.token_key,
      tokenSecret: token.token_secret,
    });
    const response = await fetch(`${this.#origin}/MAAS/metadata/2012-03-01/user-data`, {
      headers: { Authorization: authorization },
    });
    if (response.status === 404) return Buffer.alloc(0);
    if (!response.ok) throw new Error(`The metadata service answered ${response.status} to the request for user data.`);
    return Buffer.from(await response.arrayBuffer());
  }

  async #halt(systemId: string, wipe: boolean): Promise<void> {
    const { region } = this.#options;
    const record = this.#record(systemId);
    const host = this.#hosts.get(systemId);
    this.#hosts.delete(systemId);
    await host?.halt();
    if (!wipe || record === undefined) return;
    (host ?? this.#host(record)).wipe();
    region.state.hosts = region.state.hosts.filter((one) => one !== record);
    region.changed();
  }
}

/**
 * Returns the parts of the user data in the order in which the host runs them: boothooks, then scripts, each sorted by name. A simulated host ignores
 * parts of the user data that are neither boothooks nor scripts.
 */
function orderOfRun(parts: readonly UserDataPart[]): UserDataPart[] {
  const byName = parts.toSorted((a, b) => (a.filename < b.filename ? -1 : 1));
  return [
    ...byName.filter((part) => part.contentType === "text/cloud-boothook"),
    ...byName.filter((part) => part.contentType === "text/x-shellscript"),
  ];
}

/** Returns the interpreter and its arguments from a script's first line. The host finds a script's interpreter by the file name in `PATH`. */
function interpreterOf(content: Buffer): string[] {
  const first = content.subarray(0, 256).toString("latin1").split("\n")[0] ?? "";
  const words = first.startsWith("#!") ? first.slice(2).trim().split(/\s+/) : [];
  const named = words[0]?.endsWith("/env")
    ? words.slice(1)
    : words.map((word, index) => (index === 0 ? (word.split("/").at(-1) ?? word) : word));
  return named.length > 0 ? named : ["sh"];
}

async function runPart(host: SimulatedHost, part: UserDataPart): Promise<number> {
  const name = part.filename.replace(/[^A-Za-z0-9._-]/g, "_");
  const path = join(host.root, SCRIPTS, name);
  mkdirSync(join(host.root, SCRIPTS), { recursive: true });
  writeFileSync(path, part.content);
  chmodSync(path, 0o700);
  return host.run([...interpreterOf(part.content), path], OUTPUT_LOG);
}
