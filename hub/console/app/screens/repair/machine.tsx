import type { ReactNode } from "react";
import { Facts } from "../../parts/facts.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { words } from "../../parts/tones.ts";
import classes from "./repair.module.css";
import type { Repair } from "./repair-questions.ts";

type Known = NonNullable<Repair["machine"]>;

const placeOf = ({ room, rack, unit }: Known["location"]): string | undefined =>
  rack === null && room === null
    ? undefined
    : [room, rack === null ? null : `rack ${rack}`, unit === null ? null : `unit ${unit}`]
        .filter((part) => part !== null)
        .join(", ");

/** Shows where the machine stands, by which numbers a person recognizes it, and what its agent finds wrong. */
export const Machine = ({ machine }: { readonly machine: Known }): ReactNode => (
  <Section title="The machine">
    <Facts
      facts={[
        ["Place", placeOf(machine.location)],
        ["Asset tag", machine.asset_tag ?? undefined],
        ["Serial number", machine.serial ?? undefined],
        ["Serial number of the board", machine.board_serial ?? undefined],
        ["Serial number of the chassis", machine.chassis_serial ?? undefined],
        ["Firmware", machine.firmware_version ?? undefined],
        ["Machine in MAAS", machine.maas_system_id ?? undefined],
        ["Address of the host", machine.host ?? undefined],
        ["SKU", machine.sku_id],
        ["Node", words(machine.node_status)],
        ["GPUs", listOf(machine.gpus.map(({ model, bus, serial }) => `${model} at ${bus}${numbered(serial)}`))],
        ["Disks", listOf(machine.disks.map(({ name, model, serial }) => `${name}: ${model}${numbered(serial)}`))],
      ]}
    />
    {machine.faults.length === 0 ? null : (
      <ul className={classes.list} aria-label="What is wrong with the machine">
        {machine.faults.map((fault) => (
          <li key={fault.type}>
            <code>{fault.type}</code> is {fault.status} since <RelativeTime at={fault.changed_at} />
            {fault.class === "barring" ? " and keeps tenants off" : ""}: {fault.message}
          </li>
        ))}
      </ul>
    )}
  </Section>
);

const numbered = (serial: string | null): string =>
  serial === null || serial === "" ? "" : `, serial number ${serial}`;
const listOf = (lines: readonly string[]): ReactNode =>
  lines.length === 0 ? undefined : (
    <ul className={classes.list}>
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
