import type { ChildProcess } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { exitOf, forgetPid, killLeftover, notePid, startOnHost, stopOnHost } from "./process.ts";
import type { ServiceUnit } from "./unit-file.ts";
import { findUnitFile, readServiceUnit } from "./unit-file.ts";

export interface UnitAnswer {
  code: number;
  output: string;
}

interface Ended {
  code: number;
  stopped: boolean;
}

const OK: UnitAnswer = { code: 0, output: "" };

export interface HostOptions {
  root: string;
  environment: Readonly<Record<string, string>>;
  restartDelayMs: number;
  /**
   * The interval between two firings of an active systemd timer, in milliseconds. If the interval is null, the simulated host never fires its timers.
   */
  timerMs: () => number | null;
  onTimer: (service: string) => Promise<void>;
}

/** The systemd units that run on one simulated host. `HostSupervisor` keeps the list of a host's enabled units. */
export class SimulatedHost {
  readonly #options: HostOptions;
  readonly #children = new Map<string, ChildProcess>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #restarts = new Map<string, NodeJS.Timeout>();
  #down = false;

  constructor(options: HostOptions) {
    this.#options = options;
  }

  get root(): string {
    return this.#options.root;
  }

  killLeftovers(): void {
    let files: string[];
    try {
      files = readdirSync(join(this.root, "run/units"));
    } catch {
      return;
    }
    for (const file of files) if (file.endsWith(".pid")) killLeftover(this.root, file.slice(0, -".pid".length));
  }

  isActive(unit: string): boolean {
    return this.#children.has(unit) || this.#timers.has(unit) || this.#restarts.has(unit);
  }

  async start(unit: string): Promise<UnitAnswer> {
    if (this.#down) return { code: 1, output: "The host is down." };
    if (this.isActive(unit)) return OK;
    const path = findUnitFile(this.root, unit);
    if (path === null) return { code: 5, output: `Unit ${unit} not found.` };
    if (unit.endsWith(".timer")) return this.#startTimer(unit);
    if (!unit.endsWith(".service"))
      return { code: 1, output: `The simulated host runs services and timers, not ${unit}.` };
    const service = readServiceUnit(this.root, unit, path);
    if (service.execStart.length === 0) return { code: 1, output: `Unit ${unit} has no ExecStart.` };
    return service.type === "oneshot" ? this.#runOnce(service) : this.#spawn(service);
  }

  async stop(unit: string): Promise<void> {
    clearTimeout(this.#restarts.get(unit));
    this.#restarts.delete(unit);
    clearInterval(this.#timers.get(unit));
    this.#timers.delete(unit);
    const child = this.#children.get(unit);
    if (child === undefined) return;
    this.#children.delete(unit);
    await stopOnHost(child);
    forgetPid(this.root, unit);
  }

  /** Simulates a power loss of the host by stopping all its units. */
  async halt(): Promise<void> {
    this.#down = true;
    const units = [...this.#children.keys(), ...this.#timers.keys(), ...this.#restarts.keys()];
    await Promise.all(units.map((unit) => this.stop(unit)));
  }

  wipe(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  async run(command: readonly string[], log: string): Promise<number> {
    return (await this.#supervised(`command-${command.at(-1)?.split("/").at(-1) ?? ""}`, command, {}, log)).code;
  }

  #startTimer(unit: string): UnitAnswer {
    const period = this.#options.timerMs();
    const fire = (): void => {
      void this.#options.onTimer(unit.replace(/\.timer$/, ".service"));
    };
    const timer = period === null ? setInterval(() => undefined, 2 ** 31 - 1) : setInterval(fire, period);
    timer.unref();
    this.#timers.set(unit, timer);
    return OK;
  }

  async #runOnce(service: ServiceUnit): Promise<UnitAnswer> {
    for (const command of [...service.execStartPre, ...service.execStart]) {
      const { code } = await this.#supervised(
        service.name,
        command,
        service.environment,
        `var/log/${service.name}.log`,
      );
      if (code !== 0) return { code: 1, output: `Job for ${service.name} failed: the command ended with ${code}.` };
    }
    return OK;
  }

  async #supervised(
    unit: string,
    command: readonly string[],
    environment: Readonly<Record<string, string>>,
    log: string,
  ): Promise<Ended> {
    const child = startOnHost({
      root: this.root,
      command,
      environment: { ...this.#options.environment, ...environment },
      log,
    });
    const exit = exitOf(child);
    this.#children.set(unit, child);
    if (child.pid !== undefined) notePid(this.root, unit, child.pid);
    const code = await exit;
    // If somebody stopped the unit, `#children` no longer has the ended process, but may have a new process of the unit.
    if (this.#children.get(unit) !== child) return { code, stopped: true };
    this.#children.delete(unit);
    forgetPid(this.root, unit);
    return { code, stopped: false };
  }

  #spawn(service: ServiceUnit): UnitAnswer {
    const command = service.execStart.at(-1) ?? [];
    void this.#supervised(service.name, command, service.environment, `var/log/${service.name}.log`).then((ended) =>
      this.#ended(service, ended),
    );
    return OK;
  }

  #ended(service: ServiceUnit, { code, stopped }: Ended): void {
    const wanted =
      !service.finalStatuses.includes(code) &&
      (service.restart === "always" || (service.restart.startsWith("on-") && code !== 0));
    if (this.#down || stopped || !wanted) return;
    const timer = setTimeout(() => {
      this.#restarts.delete(service.name);
      void this.start(service.name);
    }, this.#options.restartDelayMs);
    this.#restarts.set(service.name, timer);
  }
}
