import { randomUUID } from "node:crypto";
import type { Counted, EventLevel, Hardware, Job, JobKind, MaasVersion, Machine, State, User } from "../state/model.ts";
import { EVENT_LEVELS } from "../state/model.ts";
import { noCounts } from "../state/seed.ts";
import type { Status } from "../state/statuses.ts";
import { mayChange, STATUS_LABEL } from "../state/statuses.ts";
import type { StateStore } from "../state/store.ts";
import { notFound, stateConflict } from "./refusal.ts";

/**
 * The durations of the simulated region's actions, in simulated seconds. The real duration of an action is its simulated duration divided by the
 * speed factor.
 */
export const DEFAULT_TIMINGS = {
  commissioning: 180,
  testing: 60,
  install: 240,
  boot: 60,
  power: 10,
  abort: 10,
  release: 20,
  erase: 120,
  rescue: 60,
  enlist: 90,
  /** How long the simulated region waits for an installed system that never reports, in simulated seconds. */
  deployTimeout: 3600,
  /** How long an API call waits for a broken BMC before it fails, in simulated seconds. */
  bmcTimeout: 60,
} as const;

export type Timings = { [Name in keyof typeof DEFAULT_TIMINGS]: number };

/** Functions that start or stop a machine's simulated host when the machine starts or stops. */
export interface HostHooks {
  /**
   * The simulated region calls `boot` when a machine's installed system starts for the first time. If the simulator simulates no hosts, `boot` is
   * null and a deployment ends when the installed system starts.
   */
  boot: ((machine: Machine) => void) | null;
  /**
   * The simulated region calls `halt` when a machine loses power or is released. The argument `wipe` of `halt` is true if the simulated host's files
   * must be deleted.
   */
  halt: (machine: Machine, wipe: boolean) => void;
  /** The simulated region calls `resume` when somebody switches on a machine that has an installed system. */
  resume: (machine: Machine) => void;
}

type JobHandler = (region: Region, machine: Machine, job: Job) => void;

export interface RegionOptions {
  state: State;
  store: StateStore;
  version: MaasVersion;
  speed: number;
  timings: Timings;
  /** The simulated region calls `onJob` for each job that is due. */
  onJob: JobHandler;
}

/**
 * The state and the clock of the simulated MAAS region. Jobs of the region that became due while the simulator was stopped run after the simulator's
 * restart.
 */
export class Region {
  readonly state: State;
  readonly version: MaasVersion;
  /** How many times faster the simulated region is than a real MAAS. A change of `speed` applies only to jobs that begin later. */
  speed: number;
  readonly timings: Timings;
  hooks: HostHooks = { boot: null, halt: () => undefined, resume: () => undefined };
  /**
   * The reports that the deployed systems have sent about their boots, in order. Boot reports are in memory only, so a restart of the simulator loses
   * them.
   */
  readonly bootReports: { systemId: string; name: string; result: string | null }[] = [];
  /**
   * By how many milliseconds the clock that the simulated region shows to clients is ahead of the real clock. The simulated region's jobs become due
   * by the real clock, without `clockAheadMs`. A restart of the simulator resets `clockAheadMs` to 0.
   */
  clockAheadMs = 0;
  noncesForgottenAt = 0;
  readonly #store: StateStore;
  readonly #onJob: JobHandler;
  #timer: NodeJS.Timeout | null = null;
  #running = false;

  constructor(options: RegionOptions) {
    this.state = options.state;
    this.version = options.version;
    this.speed = options.speed;
    this.timings = options.timings;
    this.#store = options.store;
    this.#onJob = options.onJob;
  }

  now(): number {
    return Date.now();
  }

  /** The time that the simulated region shows in its answers, and by which it checks the timestamps of signed requests. */
  toldTime(): number {
    return this.now() + this.clockAheadMs;
  }

  realMs(seconds: number): number {
    return (seconds * 1000) / this.speed;
  }

  next(sequence: string): number {
    const value = (this.state.sequences[sequence] ?? 0) + 1;
    this.state.sequences[sequence] = value;
    return value;
  }

  changed(): void {
    this.#store.changed(this.state);
  }

  flush(): void {
    this.#store.flush();
  }

  findMachine(systemId: string): Machine | undefined {
    return this.state.machines.find((machine) => machine.systemId === systemId);
  }

  machine(systemId: string): Machine {
    const machine = this.findMachine(systemId);
    if (machine === undefined) throw notFound("Machine");
    return machine;
  }

  hardwareOf(machine: Machine): Hardware | undefined {
    const address = machine.powerParameters["power_address"];
    return this.state.hardware.find((box) =>
      machine.hardwareId === null ? box.bmcAddress === address : box.id === machine.hardwareId,
    );
  }

  count(systemId: string, what: Counted): void {
    const counters = this.state.counters[systemId] ?? noCounts();
    counters[what] += 1;
    this.state.counters[systemId] = counters;
  }

  /** An event of level INFO or higher also becomes the status message of its machine. */
  event(machine: Machine, level: EventLevel, type: string, description = "", action = ""): void {
    this.state.events.push({
      id: this.next("event"),
      systemId: machine.systemId,
      level,
      type,
      description,
      username: "unknown",
      created: this.now(),
    });
    if (EVENT_LEVELS[level] < EVENT_LEVELS.INFO) return;
    machine.statusMessage = description === "" ? type : `${type} - ${description}`;
    machine.statusAction = action;
  }

  userEvent(machine: Machine, user: User, type: string, comment: string | null): void {
    this.event(machine, "DEBUG", type, comment ? `(${user.username}) - ${comment}` : `(${user.username})`);
  }

  changeStatus(machine: Machine, to: Status): void {
    const from = machine.status;
    if (from === to) return;
    if (!mayChange(from, to)) throw stateConflict(`Invalid transition: ${STATUS_LABEL[from]} -> ${STATUS_LABEL[to]}.`);
    this.forceStatus(machine, to);
  }

  /** Sets a machine's status without checking the rules for changes of status. */
  forceStatus(machine: Machine, to: Status): void {
    if (machine.status === to) return;
    this.event(
      machine,
      "DEBUG",
      "Node changed status",
      `From '${STATUS_LABEL[machine.status]}' to '${STATUS_LABEL[to]}'`,
    );
    machine.previousStatus = machine.status;
    machine.status = to;
  }

  /** A change of a machine's owner removes the machine's token. */
  setOwner(machine: Machine, owner: string | null): void {
    if (machine.owner === owner) return;
    machine.owner = owner;
    machine.token = null;
  }

  schedule(kind: JobKind, machine: Machine, seconds: number, data: Record<string, string> = {}): void {
    this.state.jobs.push({
      id: this.next("job"),
      due: this.now() + this.realMs(seconds),
      kind,
      systemId: machine.systemId,
      data,
    });
    this.changed();
    this.#arm();
  }

  cancelJobs(machine: Machine, kinds?: readonly JobKind[]): void {
    this.state.jobs = this.state.jobs.filter(
      (job) => job.systemId !== machine.systemId || (kinds !== undefined && !kinds.includes(job.kind)),
    );
  }

  /** Runs all waiting jobs of a machine now, in the order in which they are due. */
  settle(machine: Machine): void {
    for (let job = this.#earliest(machine.systemId); job !== undefined; job = this.#earliest(machine.systemId))
      this.#perform(job);
  }

  start(): void {
    this.#running = true;
    this.#arm();
  }

  stop(): void {
    this.#running = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  newUuid(): string {
    return randomUUID();
  }

  #earliest(systemId?: string): Job | undefined {
    return this.state.jobs
      .filter((job) => systemId === undefined || job.systemId === systemId)
      .toSorted((a, b) => a.due - b.due || a.id - b.id)[0];
  }

  #arm(): void {
    if (!this.#running) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const first = this.#earliest();
    this.#timer =
      first === undefined
        ? null
        : setTimeout(() => this.#tick(), Math.min(Math.max(0, first.due - this.now()), 2 ** 31 - 1));
  }

  #tick(): void {
    for (let job = this.#earliest(); job !== undefined && job.due <= this.now(); job = this.#earliest())
      this.#perform(job);
    this.#arm();
  }

  #perform(job: Job): void {
    this.state.jobs = this.state.jobs.filter((other) => other.id !== job.id);
    const machine = this.findMachine(job.systemId);
    if (machine !== undefined) this.#onJob(this, machine, job);
    this.changed();
  }
}
