import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { failDeploy } from "../engine/deploy.ts";
import { newInterface } from "../engine/inventory.ts";
import { setPower } from "../engine/power.ts";
import type { Region } from "../engine/region.ts";
import { COMMISSION_OUTCOMES, DEPLOY_OUTCOMES } from "../state/model.ts";
import { isStatusName, STATUS } from "../state/statuses.ts";
import { viewMachine } from "../view/machine.ts";
import type { Reply } from "./call.ts";
import { json } from "./call.ts";
import type { FaultBook } from "./faults.ts";
import { FAULT_KINDS } from "./faults.ts";
import { blankMachine } from "./operations/machine-form.ts";

const FaultRequest = z.strictObject({
  match: z
    .strictObject({
      method: z.string().optional(),
      op: z.string().optional(),
      path: z.string().optional(),
      system_id: z.string().optional(),
    })
    .default({}),
  kind: z.enum(FAULT_KINDS),
  code: z.number().int().min(100).max(599).optional(),
  body: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  times: z.number().int().min(1).default(1),
  after: z.number().int().min(0).optional(),
});

const ForceStatus = z.strictObject({
  status: z.union([z.number().int(), z.string()]),
  owner: z.string().nullable().optional(),
  power: z.enum(["on", "off"]).optional(),
});
const PlanRequest = z.strictObject({
  commission: z.array(z.enum(COMMISSION_OUTCOMES)).default([]),
  deploy: z.array(z.enum(DEPLOY_OUTCOMES)).default([]),
});
const FailDeploy = z.strictObject({ reason: z.string().min(1) });
const BoxRequest = z.strictObject({
  bmcReachable: z.boolean().optional(),
  hangs: z.boolean().optional(),
  bmcSeconds: z.number().min(0).optional(),
  bmcUser: z.string().optional(),
  bmcPass: z.string().optional(),
  power: z.enum(["on", "off"]).optional(),
});
const ClockRequest = z.strictObject({ ahead_seconds: z.number() });
const RackRequest = z.strictObject({ connected: z.boolean() });
const UNIT_ACTIONS = [
  "start",
  "stop",
  "restart",
  "try-restart",
  "reload-or-restart",
  "enable",
  "disable",
  "is-active",
  "is-enabled",
] as const;
export type UnitAction = (typeof UNIT_ACTIONS)[number];

const UnitRequest = z.strictObject({
  action: z.enum(UNIT_ACTIONS),
  unit: z.string().regex(/^[A-Za-z0-9_.@-]+$/),
});

export interface UnitSupervisor {
  unit(systemId: string, action: UnitAction, unit: string): Promise<{ code: number; output: string }>;
  describe(): unknown;
}

export interface ControlParts {
  region: Region;
  faults: FaultBook;
  hosts: UnitSupervisor | null;
}

type Route = (params: readonly string[], body: unknown) => Reply | Promise<Reply>;

function isLoopback(request: IncomingMessage): boolean {
  const address = request.socket.remoteAddress ?? "";
  return address === "::1" || address.startsWith("127.") || address.startsWith("::ffff:127.");
}

function statusOf(value: number | string): (typeof STATUS)[keyof typeof STATUS] | undefined {
  if (typeof value === "string") return isStatusName(value) ? STATUS[value] : undefined;
  return Object.values(STATUS).find((code) => code === value);
}

/**
 * The control API under `/_sim/`, with which tests change the simulated region. The control API needs no key, and answers requests from this computer
 * only.
 */
export class Control {
  readonly #parts: ControlParts;
  readonly #routes: readonly { method: string; path: RegExp; run: Route }[];

  constructor(parts: ControlParts) {
    this.#parts = parts;
    this.#routes = [
      { method: "GET", path: /^counters$/, run: () => this.#counters() },
      { method: "GET", path: /^machines$/, run: () => this.#machines() },
      {
        method: "GET",
        path: /^hardware$/,
        run: () => json(parts.region.state.hardware.map(({ bmcPass: _, ...box }) => box)),
      },
      { method: "GET", path: /^hosts$/, run: () => json(parts.hosts?.describe() ?? []) },
      { method: "GET", path: /^faults$/, run: () => json(parts.faults.list()) },
      { method: "POST", path: /^faults$/, run: (_, body) => json(parts.faults.add(FaultRequest.parse(body)), 201) },
      { method: "DELETE", path: /^faults$/, run: () => this.#clearFaults() },
      {
        method: "POST",
        path: /^machines\/([^/]+)\/force-status$/,
        run: ([id], body) => this.#force(id, ForceStatus.parse(body)),
      },
      {
        method: "POST",
        path: /^machines\/([^/]+)\/outcomes$/,
        run: ([id], body) => this.#plan(id, PlanRequest.parse(body)),
      },
      { method: "POST", path: /^machines\/([^/]+)\/settle$/, run: ([id]) => this.#settle(id) },
      {
        method: "POST",
        path: /^machines\/([^/]+)\/fail-deploy$/,
        run: ([id], body) => this.#failDeploy(id, FailDeploy.parse(body)),
      },
      { method: "DELETE", path: /^machines\/([^/]+)$/, run: ([id]) => this.#forget(id) },
      { method: "POST", path: /^hardware\/([^/]+)\/enlist$/, run: ([id]) => this.#enlist(id) },
      { method: "POST", path: /^hardware\/([^/]+)$/, run: ([id], body) => this.#changeBox(id, BoxRequest.parse(body)) },
      { method: "POST", path: /^clock$/, run: (_, body) => this.#clock(ClockRequest.parse(body)) },
      { method: "POST", path: /^rack$/, run: (_, body) => this.#rack(RackRequest.parse(body)) },
      { method: "POST", path: /^hosts\/([^/]+)\/units$/, run: ([id], body) => this.#unit(id, UnitRequest.parse(body)) },
    ];
  }

  async answer(request: IncomingMessage, url: URL, body: Buffer): Promise<Reply> {
    if (!isLoopback(request)) return json({ error: "The control API answers this machine only." }, 403);
    const path = url.pathname.slice("/_sim/".length).replace(/\/$/, "");
    for (const route of this.#routes) {
      const match = route.path.exec(path);
      if (match === null || route.method !== request.method) continue;
      try {
        return await route.run(match.slice(1), body.length === 0 ? {} : JSON.parse(body.toString("utf8")));
      } catch (error) {
        if (error instanceof z.ZodError || error instanceof SyntaxError) return json({ error: error.message }, 400);
        throw error;
      }
    }
    return json(
      { error: `The control API has no ${request.method ?? "GET"} ${path}. The simulator's README lists what it has.` },
      404,
    );
  }

  #counters(): Reply {
    const { state } = this.#parts.region;
    const machines = Object.fromEntries(
      Object.entries(state.counters).map(([id, counts]) => [
        id,
        { hostname: this.#parts.region.findMachine(id)?.hostname ?? null, ...counts },
      ]),
    );
    const total = Object.values(state.requests).reduce((sum, count) => sum + count, 0);
    return json({ machines, requests: state.requests, total_requests: total });
  }

  #machines(): Reply {
    const { region } = this.#parts;
    return json(
      region.state.machines.map((machine) => ({
        system_id: machine.systemId,
        hostname: machine.hostname,
        status: machine.status,
        power_state: machine.powerState,
        hardware: machine.hardwareId,
        last_sync: machine.lastSync,
      })),
    );
  }

  #clearFaults(): Reply {
    this.#parts.faults.clear();
    return json([]);
  }

  #force(id: string | undefined, request: z.infer<typeof ForceStatus>): Reply {
    const { region } = this.#parts;
    const machine = region.machine(id ?? "");
    const status = statusOf(request.status);
    if (status === undefined) return json({ error: `No status ${String(request.status)}.` }, 400);
    region.cancelJobs(machine);
    if (request.owner !== undefined) region.setOwner(machine, request.owner);
    if (request.power !== undefined) setPower(region, machine, request.power);
    region.forceStatus(machine, status);
    return json(viewMachine(region, machine));
  }

  #plan(id: string | undefined, request: z.infer<typeof PlanRequest>): Reply {
    const machine = this.#parts.region.machine(id ?? "");
    this.#parts.region.state.plans[machine.systemId] = request;
    return json(request);
  }

  /** Makes a machine's deploy fail. The given reason of a failed deploy becomes the machine's error and the text of an event. */
  #failDeploy(id: string | undefined, request: z.infer<typeof FailDeploy>): Reply {
    const { region } = this.#parts;
    const machine = region.machine(id ?? "");
    failDeploy(region, machine, request.reason);
    return json(viewMachine(region, machine));
  }

  #settle(id: string | undefined): Reply {
    const machine = this.#parts.region.machine(id ?? "");
    this.#parts.region.settle(machine);
    return json(viewMachine(this.#parts.region, machine));
  }

  #forget(id: string | undefined): Reply {
    const { region } = this.#parts;
    const machine = region.machine(id ?? "");
    region.cancelJobs(machine);
    region.hooks.halt(machine, true);
    region.state.machines = region.state.machines.filter((one) => one !== machine);
    return json({ forgotten: machine.systemId });
  }

  /**
   * Simulates that a server boots by PXE, although MAAS did not switch it on. If no machine has the booted server's BMC address, the region creates a
   * New machine.
   */
  async #enlist(id: string | undefined): Promise<Reply> {
    const { region } = this.#parts;
    const box = region.state.hardware.find((one) => one.id === id);
    if (box === undefined) return json({ error: `No box ${id ?? ""}.` }, 404);
    const known = region.state.machines.find((machine) => machine.powerParameters["power_address"] === box.bmcAddress);
    const machine = known ?? blankMachine(region);
    if (known === undefined) {
      machine.architecture = "amd64/generic";
      machine.powerType = "ipmi";
      machine.powerParameters = {
        power_driver: "LAN_2_0",
        power_boot_type: "efi",
        power_address: box.bmcAddress,
        power_user: "maas",
        power_pass: "",
        k_g: "",
        cipher_suite_id: "3",
        privilege_level: "ADMIN",
        mac_address: "",
      };
      region.state.machines.push(machine);
      region.event(machine, "INFO", "New");
    }
    const pxe = box.nics.find((nic) => nic.pxe);
    if (pxe !== undefined && !machine.interfaces.some((nic) => nic.macAddress === pxe.mac)) {
      const nic = newInterface(region, pxe.name, pxe.mac);
      nic.vlanId = pxe.vlanId;
      machine.interfaces.push(nic);
      machine.bootInterfaceId ??= nic.id;
    }
    machine.hardwareId = box.id;
    machine.hardwareUuid = box.uuid;
    return json(viewMachine(region, machine));
  }

  #changeBox(id: string | undefined, request: z.infer<typeof BoxRequest>): Reply {
    const box = this.#parts.region.state.hardware.find((one) => one.id === id);
    if (box === undefined) return json({ error: `No box ${id ?? ""}.` }, 404);
    Object.assign(box, request);
    return json({ id: box.id, bmcReachable: box.bmcReachable, power: box.power });
  }

  #clock(request: z.infer<typeof ClockRequest>): Reply {
    this.#parts.region.clockAheadMs = request.ahead_seconds * 1000;
    return json(request);
  }

  #rack(request: z.infer<typeof RackRequest>): Reply {
    this.#parts.region.state.rack.connected = request.connected;
    return json(request);
  }

  async #unit(id: string | undefined, request: z.infer<typeof UnitRequest>): Promise<Reply> {
    const { hosts } = this.#parts;
    if (hosts === null) return json({ error: "No hosts are simulated: start the simulator with a hosts folder." }, 409);
    return json(await hosts.unit(id ?? "", request.action, request.unit));
  }
}
