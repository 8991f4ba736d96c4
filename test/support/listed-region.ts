import type { MaasError, MaasEvent, MaasMachine, MaasPort, UnreadableMachine } from "../../hub/maas/port.ts";

export function machine(systemId: string, status = 4): MaasMachine {
  const texts = { statusName: "Ready", statusMessage: "", errorDescription: "", osystem: "", distroSeries: "" };
  const sync = { enableHwSync: null, lastSync: null, nextSync: null, syncIntervalSeconds: null };
  const lists = { ipAddresses: [], interfaceAddresses: [], macAddresses: [] };
  const rest = {
    powerState: "on",
    owner: null,
    locked: false,
    hardwareUuid: null,
    serial: null,
    boardSerial: null,
    chassisSerial: null,
    firmwareVersion: null,
    ephemeral: false,
  };
  const place = { tags: [], pool: "", zone: "", architecture: "", cpuCount: null, memoryMib: null };
  return { systemId, hostname: systemId, status, ...texts, ...sync, ...lists, ...rest, ...place };
}
export const event = (id: number, node: string): MaasEvent => ({
  id,
  node,
  hostname: node,
  level: "DEBUG",
  type: "Node changed status",
  description: "",
  created: "",
});

/** A simulated MAAS region that consists of a list of machines and a list of events. */
export class Region {
  machines: MaasMachine[] = [];
  /** Machines that exist in the simulated region, but that its lists of machines omit. */
  unlisted: MaasMachine[] = [];
  unreadable: UnreadableMachine[] = [];
  feed: MaasEvent[] = [];
  isSuperuser = true;
  /** The error that every request for events throws, or null if requests for events succeed. */
  fault: MaasError | null = null;
  readonly asked: string[] = [];
  /** The simulated region calls `meanwhile` during each request for a list of machines. */
  meanwhile: () => Promise<void> = async () => undefined;

  /** The simulated region calls `onReadOne` during each request for one machine. */
  onReadOne: () => void = () => undefined;

  readonly port = {
    events: async ({ after = 0, limit }: { after?: number; limit: number }) => {
      this.asked.push("events");
      if (this.fault !== null) throw this.fault;
      const behind = this.feed.filter(({ id }) => id > after).sort((a, b) => a.id - b.id);
      return (after === 0 && limit === 1 ? behind.slice(-1) : behind.slice(0, limit)).reverse();
    },
    listMachines: async () => {
      this.asked.push("list");
      await this.meanwhile();
      return { machines: this.machines, unreadable: this.unreadable };
    },
    readMachines: async (ids: readonly string[]) => {
      this.asked.push(`some ${ids.length > 3 ? ids.length : ids.join(" ")}`);
      await this.meanwhile();
      const wanted = new Set<string | null>(ids);
      return {
        machines: this.machines.filter(({ systemId }) => wanted.has(systemId)),
        unreadable: this.unreadable.filter(({ systemId }) => wanted.has(systemId)),
      };
    },
    systemIds: async () => {
      this.asked.push("ids");
      return new Set([...this.machines, ...this.unlisted].map(({ systemId }) => systemId));
    },
    readMachine: async (id: string) => {
      this.asked.push(`one ${id}`);
      this.onReadOne();
      return [...this.machines, ...this.unlisted].find(({ systemId }) => systemId === id) ?? null;
    },
    whoami: async () => {
      this.asked.push("whoami");
      return { username: "muster", isSuperuser: this.isSuperuser };
    },
  } as unknown as MaasPort;
}
