/**
 * The facts of a machine in MAAS that select the machine for an adoption, or that prove which host the machine is. The table `maas_machines` stores
 * facts of a machine in MAAS, such as its tags, zone and serial number, as JSON. A row of `maas_machines` that an older hub wrote has an empty object
 * as its facts.
 */
export interface MachineDetails {
  readonly tags: readonly string[];
  readonly pool: string;
  readonly zone: string;
  readonly macs: readonly string[];
  readonly hardware_uuid: string | null;
  readonly serial: string | null;
  /** The fields `board_serial`, `chassis_serial` and `firmware_version` are missing in a row of `maas_machines` that an older hub wrote. */
  readonly board_serial?: string | null;
  readonly chassis_serial?: string | null;
  readonly firmware_version?: string | null;
  readonly architecture: string;
  readonly osystem: string;
  readonly distro_series: string;
  readonly cpu_count: number | null;
  readonly memory_mib: number | null;
  readonly ephemeral: boolean;
}

/** False if the facts of a machine are the empty object in a row that an older hub wrote. */
export const isReadInFull = (details: MachineDetails | Record<string, never>): details is MachineDetails =>
  "macs" in details;
