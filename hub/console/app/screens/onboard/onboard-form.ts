import { HubError } from "../../api/hub-error.ts";
import type { Body } from "../../api/schema.ts";
import { address, hostname, mac, optional, place, present, sku, whole } from "../../forms/checks.ts";
import { type CsvColumn, type CsvRow, type CsvTable, readCsv, repeatedIn } from "../../forms/csv.ts";
import type { Errors } from "../../forms/form-errors.ts";

export interface OnboardValues {
  readonly many: boolean;
  readonly site_id: string;
  readonly profile_id: string;
  readonly sku_id: string;
  readonly hostname: string;
  readonly ipmi_ip: string;
  readonly pxe_mac: string;
  readonly room: string;
  readonly rack: string;
  readonly unit: string;
  readonly hosts: string;
  readonly stop_after_failures: string;
}

type Batch = Body<"createOnboardingBatch">;
type Host = Batch["nodes"][number];
const MOST_HOSTS = 1000;

/** The columns of the table of hosts to onboard, in the order of the example. */
const HOST_COLUMNS: readonly CsvColumn[] = [
  { name: "hostname", check: hostname, required: true },
  { name: "ipmi_ip", check: address, required: true },
  { name: "pxe_mac", check: mac, required: false },
  { name: "room", check: place, required: false },
  { name: "rack", check: place, required: false },
  { name: "unit", check: whole(1, 100), required: false },
];

export function readHosts(text: string): CsvTable {
  const { rows, faults } = readCsv(text, HOST_COLUMNS);
  const twice = ["hostname", "ipmi_ip", "pxe_mac"].flatMap((column) => repeatedIn(rows, column));
  const all = [...faults, ...twice].sort((a, b) => a.line - b.line);
  if (rows.length > MOST_HOSTS)
    all.push({ line: rows[MOST_HOSTS]?.line ?? 0, column: null, message: `a batch has at most ${MOST_HOSTS} hosts` });
  return { rows, faults: all };
}

const text = (value: string | undefined): string | null =>
  value === undefined || value.trim() === "" ? null : value.trim();

function hostOf(values: CsvRow["values"]): Host {
  const pxe = text(values["pxe_mac"]);
  const unit = text(values["unit"]);
  const location = {
    room: text(values["room"]),
    rack: text(values["rack"]),
    unit: unit === null ? null : Number(unit),
  };
  return {
    hostname: (values["hostname"] ?? "").trim(),
    ipmi_ip: (values["ipmi_ip"] ?? "").trim(),
    ...(pxe === null ? {} : { pxe_mac: pxe }),
    ...(Object.values(location).every((part) => part === null) ? {} : { location }),
  };
}

const hostsError = (hosts: string): string | undefined => {
  const { rows, faults } = readHosts(hosts);
  if (faults.length > 0) return "has faults";
  return rows.length === 0 ? "has no host" : undefined;
};

export const checkOnboarding = (values: OnboardValues): Errors<OnboardValues> => ({
  site_id: present(values.site_id),
  profile_id: present(values.profile_id),
  sku_id: sku(values.sku_id),
  ...(values.many
    ? {
        hosts: hostsError(values.hosts),
        stop_after_failures: optional(whole(1, 2000))(values.stop_after_failures),
      }
    : {
        hostname: hostname(values.hostname),
        ipmi_ip: address(values.ipmi_ip),
        pxe_mac: optional(mac)(values.pxe_mac),
        room: optional(place)(values.room),
        rack: optional(place)(values.rack),
        unit: optional(whole(1, 100))(values.unit),
      }),
});

const selectorsOf = ({ site_id, profile_id, sku_id }: OnboardValues) => ({ site_id, profile_id, sku_id });

export const oneBody = (values: OnboardValues): Body<"createOnboarding"> => ({
  ...selectorsOf(values),
  ...hostOf({
    hostname: values.hostname,
    ipmi_ip: values.ipmi_ip,
    pxe_mac: values.pxe_mac,
    room: values.room,
    rack: values.rack,
    unit: values.unit,
  }),
});

/**
 * Converts the hub's error for a host into the line and column of the host in the table, as the form's own checks name it. The hub names it by its
 * index.
 */
export function byLine(error: HubError, { rows }: CsvTable): HubError {
  const fields = error.fields.map(({ pointer, message }) => {
    const [, index = "", column] = /^[/]nodes[/](\d+)(?:[/](\w+))?/.exec(pointer) ?? [];
    const row = index === "" ? undefined : rows[Number(index)];
    if (row === undefined) return { pointer, message };
    const where = column === undefined ? `line ${row.line}` : `line ${row.line}, column ${column}`;
    return { pointer: "/hosts", message: `${where}: ${message}` };
  });
  const { status, code, title, detail, requestId, context } = error;
  return new HubError({ status, code, title, detail, requestId, context, fields });
}

export const batchBody = (values: OnboardValues): Batch => ({
  ...selectorsOf(values),
  nodes: readHosts(values.hosts).rows.map(({ values: row }) => hostOf(row)),
  ...(values.stop_after_failures.trim() === "" ? {} : { stop_after_failures: Number(values.stop_after_failures) }),
});
