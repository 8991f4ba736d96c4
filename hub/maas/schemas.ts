import { z } from "zod";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { InterfaceAddress } from "./host-address.ts";
import type { MaasBlockDevice, MaasEvent, MaasInterface, MaasMachine, MaasRack, MaasSubnet } from "./port.ts";

/**
 * The schemas contain only the fields that Muster uses, because versions of MAAS add and drop other fields (maas 7). If a version of MAAS lacks a
 * field, the schema gives the field the value for "not known".
 */
const text = z
  .string()
  .nullish()
  .transform((value) => storable(value ?? ""));
/** PostgreSQL can store neither NUL nor an incomplete surrogate pair. */
const storable = (value: string): string => value.replaceAll("\0", "").toWellFormed();
const word = z.string().transform(storable);
/** System ids become parts of paths and keys, so the schema restricts the characters of a system id. */
const systemId = z.string().regex(/^[\w-]{1,64}$/);
/** The length limit of free text that comes from racks, installers and scripts. Text from racks, installers and scripts may repeat credentials. */
const TOLD = 300;
const told = text.transform((value) =>
  withoutCredentials(value.slice(0, 10 * TOLD))
    .slice(0, TOLD)
    .toWellFormed(),
);
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);
/** MAAS, written with Django, gives times in ISO 8601. Some versions of MAAS omit the time zone of a time, which is then UTC. */
const time = z
  .string()
  .nullish()
  .transform((value, ctx) => {
    if (value === null || value === undefined || value === "") return null;
    const date = new Date(/(Z|[+-]\d\d:?\d\d)$/.test(value) ? value : `${value}Z`);
    // The hub refuses a time that PostgreSQL cannot store.
    if (date.getTime() >= 0 && date.getUTCFullYear() <= 9999) return date;
    ctx.addIssue({ code: "custom", message: "is not a time" });
    return z.NEVER;
  });

/**
 * The largest number of tags that the hub keeps of a machine, and the largest number of characters that it keeps of a short text, such as a tag or a
 * serial number.
 */
const [MOST_TAGS, LONGEST_WORD] = [256, 256];
/**
 * If a machine's field that only an adoption uses is missing or has an unknown form in MAAS's answer, the hub reads the field as "not known". A tag
 * of an unknown form in MAAS's answer must not keep the hub from reading the machine's status.
 */
const shortText = text.transform((value) => value.slice(0, LONGEST_WORD).toWellFormed()).catch("");
const named = z
  .object({ name: shortText })
  .nullish()
  .catch(null)
  .transform((value) => value?.name ?? "");
const count = z
  .number()
  .nullish()
  .catch(null)
  .transform((value) => (typeof value === "number" && value >= 0 ? Math.trunc(value) : null));
/** MAAS writes `Unknown` for a serial number or a version that the commissioning did not find. */
const knownOf = (text: string | undefined): string | null =>
  text === undefined || /^(unknown)?$/i.test(text) ? null : text;

interface WithAddresses {
  readonly ip_addresses?: readonly string[] | null | undefined;
  readonly interface_set?:
    | readonly { readonly links?: readonly { readonly ip_address?: string | null | undefined }[] | null | undefined }[]
    | null
    | undefined;
}

/**
 * A machine's addresses, in the order in which MAAS created the interfaces. If a version of MAAS has no field `ip_addresses`, `addressesOf` reads the
 * IP addresses in the field `links` of the machine's interfaces.
 */
function addressesOf(machine: WithAddresses): string[] {
  if (machine.ip_addresses) return [...machine.ip_addresses];
  const links = (machine.interface_set ?? []).flatMap((nic) => nic.links ?? []);
  return links.flatMap((link) => (link.ip_address ? [link.ip_address] : []));
}

interface WithInterfaces {
  readonly boot_interface?: { readonly id?: number | null | undefined } | null | undefined;
  readonly interface_set?:
    | readonly {
        readonly id?: number | null | undefined;
        readonly name?: string | null | undefined;
        readonly links?: readonly { readonly ip_address?: string | null | undefined }[] | null | undefined;
      }[]
    | null
    | undefined;
}

function interfaceAddressesOf({ boot_interface: boot, interface_set: interfaces }: WithInterfaces): InterfaceAddress[] {
  const bootId = boot?.id ?? null;
  return (interfaces ?? []).flatMap(({ id, name, links }) =>
    (links ?? []).flatMap(({ ip_address: address }) =>
      address && name ? [{ interface: name, boots: bootId !== null && id === bootId, address }] : [],
    ),
  );
}

/** If a machine's data in MAAS's answer does not match the schema, the hub reads only the machine's system id. */
export const MachineIdentity = z.object({ system_id: systemId });

export const Machine = z
  .object({
    system_id: systemId,
    hostname: text,
    status: z.int32(),
    status_name: text,
    status_message: told,
    error_description: told,
    power_state: text,
    owner: word.nullish(),
    locked: flag,
    ip_addresses: z.array(word).nullish(),
    interface_set: z
      .array(
        z.object({
          id: z.int().nullish(),
          name: word.nullish(),
          mac_address: word.nullish(),
          links: z.array(z.object({ ip_address: word.nullish() })).nullish(),
        }),
      )
      .nullish(),
    boot_interface: z.object({ id: z.int().nullish() }).nullish(),
    osystem: text,
    distro_series: text,
    enable_hw_sync: z.boolean().nullish(),
    last_sync: time,
    next_sync: time,
    sync_interval: z.int32().nullish(),
    hardware_uuid: word.nullish(),
    hardware_info: z
      .object({
        system_serial: shortText,
        mainboard_serial: shortText.optional(),
        chassis_serial: shortText.optional(),
        mainboard_firmware_version: shortText.optional(),
      })
      .nullish()
      .catch(null),
    tag_names: z.array(shortText).nullish().catch(null),
    pool: named,
    zone: named,
    architecture: shortText,
    cpu_count: count,
    memory: count,
    ephemeral_deploy: flag.catch(false),
  })
  .transform(
    (m): MaasMachine => ({
      systemId: m.system_id,
      hostname: m.hostname,
      status: m.status,
      statusName: m.status_name,
      statusMessage: m.status_message,
      errorDescription: m.error_description,
      powerState: m.power_state,
      owner: m.owner === undefined || m.owner === "" ? null : m.owner,
      locked: m.locked,
      ipAddresses: addressesOf(m),
      interfaceAddresses: interfaceAddressesOf(m),
      macAddresses: (m.interface_set ?? []).flatMap((nic) => (nic.mac_address ? [nic.mac_address.toLowerCase()] : [])),
      osystem: m.osystem,
      distroSeries: m.distro_series,
      enableHwSync: m.enable_hw_sync ?? null,
      lastSync: m.last_sync,
      nextSync: m.next_sync,
      syncIntervalSeconds: m.sync_interval ?? null,
      hardwareUuid: m.hardware_uuid ?? null,
      serial: knownOf(m.hardware_info?.system_serial),
      boardSerial: knownOf(m.hardware_info?.mainboard_serial),
      chassisSerial: knownOf(m.hardware_info?.chassis_serial),
      firmwareVersion: knownOf(m.hardware_info?.mainboard_firmware_version),
      tags: (m.tag_names ?? []).slice(0, MOST_TAGS),
      pool: m.pool,
      zone: m.zone,
      architecture: m.architecture,
      cpuCount: m.cpu_count,
      memoryMib: m.memory,
      ephemeral: m.ephemeral_deploy,
    }),
  );

export const BlockDevice = z
  .object({ id: z.int(), type: text, name: text, model: text, serial: text, id_path: text, size: z.number() })
  .transform(
    (d): MaasBlockDevice => ({
      id: d.id,
      type: d.type,
      name: d.name,
      model: d.model,
      serial: d.serial,
      idPath: d.id_path,
      sizeBytes: d.size,
    }),
  );

const Link = z
  .object({
    id: z.int(),
    mode: z.string(),
    ip_address: z.string().nullish(),
    subnet: z.object({ id: z.int(), cidr: z.string() }).nullish(),
  })
  .transform((l) => ({
    id: l.id,
    mode: l.mode.toLowerCase(),
    ipAddress: l.ip_address || null,
    subnetId: l.subnet?.id ?? null,
    subnetCidr: l.subnet?.cidr ?? null,
  }));

export const Interface = z
  .object({
    id: z.int(),
    name: z.string(),
    type: text,
    mac_address: text,
    vlan: z.object({ id: z.int(), vid: z.int() }).nullish(),
    links: z.array(Link).nullish(),
  })
  .transform(
    (i): MaasInterface => ({
      id: i.id,
      name: i.name,
      type: i.type,
      macAddress: i.mac_address.toLowerCase(),
      vlanId: i.vlan?.id ?? null,
      vlanVid: i.vlan?.vid ?? null,
      links: i.links ?? [],
    }),
  );

export const Subnet = z
  .object({ id: z.int(), cidr: z.string(), name: text, vlan: z.object({ id: z.int(), vid: z.int() }) })
  .transform((s): MaasSubnet => ({ id: s.id, cidr: s.cidr, name: s.name, vlanId: s.vlan.id, vlanVid: s.vlan.vid }));

const Event = z.object({
  id: z.int(),
  node: text,
  hostname: text,
  level: text,
  type: text,
  description: told,
  created: text,
});
/**
 * The parser of MAAS's events leaves out an event without a readable id. If the hub cannot read a MAAS event, it finds the change that the event
 * reported at its next comparison of the whole site with MAAS.
 */
export const Events = z.object({ events: z.array(z.unknown()) }).transform((page, ctx): MaasEvent[] => {
  const read = page.events.flatMap((event) => Event.safeParse(event).data ?? []);
  if (read.length === 0 && page.events.length > 0)
    ctx.addIssue({ code: "custom", path: ["events"], message: "none of the events can be read" });
  return read;
});

export const WhoAmI = z.object({ username: z.string(), is_superuser: z.boolean() });
export const Version = z.object({ version: z.string(), capabilities: z.array(z.string()).nullish() });
export const Racks = z.array(
  z
    .object({
      system_id: z.string(),
      hostname: text,
      interface_set: z
        .array(z.object({ name: text, vlan: z.object({ vid: z.int(), dhcp_on: flag }).nullish() }))
        .nullish(),
    })
    .transform(
      (rack): MaasRack => ({
        systemId: rack.system_id,
        hostname: rack.hostname,
        interfaces: (rack.interface_set ?? []).map(({ name, vlan }) => ({
          name,
          vlanVid: vlan?.vid ?? null,
          dhcpOn: vlan?.dhcp_on ?? false,
        })),
      }),
    ),
);
export const Scripts = z.array(z.object({ name: z.string(), tags: z.array(z.string()).nullish() }));
export const BootResources = z.array(z.object({ name: z.string(), architecture: text, type: text }));
/** This schema reads only the BMC's address, and drops the passwords in MAAS's answer (decision M6). */
export const PowerAddresses = z.record(z.string(), z.object({ power_address: z.string().nullish() }));
/** This schema reads the keys of MAAS's answer with power parameters, which are the machines' system ids. */
export const MachineIds = z.record(
  systemId,
  z.unknown().transform(() => null),
);
export const PowerState = z.object({ state: z.string() });
export const MachineTokenAnswer = z
  .object({ consumer_key: z.string(), token_key: z.string(), token_secret: z.string() })
  .nullable();
export const Anything = z.json();
