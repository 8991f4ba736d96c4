import type { ReactNode } from "react";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { Empty } from "../../parts/states.tsx";
import { sizeOf, speedOf } from "./machine-sizes.ts";
import type { Node } from "./node-questions.ts";

type Inventory = NonNullable<Node["inventory"]>;

/** Shows the machine as MAAS reports it, and the host as its agent reports it. */
export function MachineTab({
  node: { maas, maas_system_id: id, inventory, conditions },
}: {
  readonly node: Node;
}): ReactNode {
  const told = (wanted: string): string => {
    const one = conditions.find(({ type }) => type === wanted);
    return one === undefined ? "nothing reported" : `${one.reason}: ${one.message}`;
  };
  return (
    <>
      <Section title="As MAAS sees it">
        {maas === null ? (
          <Empty title="The hub has not seen a machine of the node in MAAS" kind="none">
            {id === null ? "The node is not bound to a machine." : `The node is bound to the machine ${id}.`}
          </Empty>
        ) : (
          <Facts
            facts={[
              ["Machine", <code key="id">{id}</code>],
              ["Status", maas.status],
              ["Power", maas.power_state],
              ["Addresses", maas.ip_addresses.join(", ") || "none"],
              ["Last hardware sync", <RelativeTime key="last" at={maas.last_sync} />],
              ["Next hardware sync", <RelativeTime key="next" at={maas.next_sync} none="none" />],
              ["Observed", <RelativeTime key="at" at={maas.observed_at} />],
              ...hardwareFacts(maas.hardware),
              ["RoCE in MAAS", told("network.roce")],
              ["RoCE on the host", told("network.addresses")],
            ]}
          />
        )}
      </Section>
      {inventory === null ? (
        <Section title="Inventory">
          <Empty title="The agent has not reported an inventory yet" kind="none">
            The agent reports it after its enrollment.
          </Empty>
        </Section>
      ) : (
        <InventoryOf inventory={inventory} />
      )}
    </>
  );
}

function hardwareFacts(hardware: NonNullable<Node["maas"]>["hardware"]): Fact[] {
  if (hardware === null) return [];
  const { uuid, serial, board_serial: board, chassis_serial: chassis, firmware_version: firmware } = hardware;
  const numbers: readonly (readonly [string, string | null])[] = [
    ["Hardware UUID", uuid],
    ["Serial number", serial],
    ["Serial number of the board", board],
    ["Serial number of the chassis", chassis],
    ["Firmware", firmware],
  ];
  return [
    ...numbers.map(([name, value]): Fact => [name, value === null ? "unknown" : <code key={name}>{value}</code>]),
    ["Zone and pool", `${hardware.zone}, ${hardware.pool}`],
    ["Tags", hardware.tags.join(", ") || "none"],
  ];
}

const DISKS: readonly Column<Inventory["disks"][number]>[] = [
  { id: "name", head: "Disk", cell: ({ name }) => <code>{name}</code> },
  { id: "size", head: "Size", align: "end", cell: ({ bytes }) => sizeOf(bytes) },
  { id: "kind", head: "Kind", cell: ({ kind }) => kind },
  { id: "model", head: "Model", wide: true, cell: ({ model }) => model },
  { id: "serial", head: "Serial number", cell: ({ serial }) => <code>{serial}</code> },
];
const INTERFACES: readonly Column<Inventory["interfaces"][number]>[] = [
  { id: "name", head: "Interface", cell: ({ name }) => <code>{name}</code> },
  { id: "mac", head: "MAC", cell: ({ mac }) => <code>{mac}</code> },
  { id: "speed", head: "Speed", align: "end", cell: ({ speed_mbps: speed }) => speedOf(speed) },
  { id: "ip", head: "IPv4", cell: ({ ipv4 }) => <code>{ipv4.join(", ") || "-"}</code> },
];
const GPUS: readonly Column<Inventory["gpus"][number]>[] = [
  { id: "bus", head: "Bus", cell: ({ bus }) => <code>{bus}</code> },
  { id: "model", head: "Model", cell: ({ vendor, model }) => `${vendor} ${model}` },
  { id: "memory", head: "Memory", align: "end", cell: ({ memory_bytes: bytes }) => sizeOf(bytes) },
  { id: "serial", head: "Serial number", cell: ({ serial }) => <code>{serial ?? "-"}</code> },
];

function InventoryOf({ inventory }: { readonly inventory: Inventory }): ReactNode {
  const { system, os, cpu, disks, interfaces, gpus } = inventory;
  const facts: Fact[] = [
    ["System", `${system.manufacturer} ${system.model}`],
    ["UUID", <code key="uuid">{system.uuid}</code>],
    ["Operating system", `${os.distro} ${os.release} (${os.arch})`],
    ["Kernel", <code key="kernel">{os.kernel}</code>],
    ["Processor", `${cpu.model}, ${cpu.sockets} sockets, ${cpu.cores} cores`],
    ["Memory", sizeOf(inventory.memory_bytes)],
    ["Hostname", <code key="host">{inventory.hostname}</code>],
    ["Boot", <code key="boot">{inventory.boot_id}</code>],
  ];
  return (
    <>
      <Section title="Inventory">
        <Facts facts={facts} />
      </Section>
      <Section title="GPUs">
        <DataTable label="GPUs of the host" columns={GPUS} rows={gpus} rowKey={({ bus }) => bus} />
      </Section>
      <Section title="Disks">
        <DataTable label="Disks of the host" columns={DISKS} rows={disks} rowKey={({ name }) => name} />
      </Section>
      <Section title="Network interfaces">
        <DataTable
          label="Network interfaces of the host"
          columns={INTERFACES}
          rows={interfaces}
          rowKey={({ name }) => name}
        />
      </Section>
    </>
  );
}
