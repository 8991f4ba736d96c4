/** Outputs of `nvidia-smi -q -x` for tests. These outputs of `nvidia-smi` have the field names of NVIDIA's documentation and of published outputs. */

/** Versions of NVIDIA's driver whose outputs differ in the fields that Muster reads. */
export type Driver = "470.256.02" | "525.147.05" | "555.42.06" | "575.51.02" | "590.44.01";

export interface XmlGpu {
  readonly pci: string;
  readonly uuid: string;
  readonly driver?: Driver;
  readonly serial?: string;
  readonly vbios?: string;
  readonly persistence?: string;
  readonly mig?: string;
  readonly computeMode?: string;
  readonly accounting?: string;
  readonly ecc?: string;
  readonly volatileErrors?: string;
  readonly remapPending?: string;
  readonly remapFailure?: string;
  /** The recovery action that NVIDIA's drivers since R565 recommend for the GPU. */
  readonly recovery?: string;
  readonly resetRequired?: string;
  readonly used?: string;
  readonly powerLimit?: string;
  readonly fabric?: { readonly state: string; readonly status: string };
  readonly processes?: readonly { readonly pid: number; readonly name: string }[];
}

const DEPRECATED = "Requested functionality has been deprecated";
const ABSENT = "N/A";
const majorOf = (driver: Driver): number => Number(driver.split(".")[0]);

/**
 * NVIDIA's drivers report `gpu_reset_status` since R525, and `gpu_recovery_action` since R565. NVIDIA's drivers since R565 mark `gpu_reset_status` as
 * deprecated.
 */
function resetFields(gpu: XmlGpu, major: number): string {
  if (major < 525) return "";
  const required = major < 565 ? (gpu.resetRequired ?? "No") : DEPRECATED;
  const drain = major < 565 ? ABSENT : DEPRECATED;
  const status = `<gpu_reset_status><reset_required>${required}</reset_required><drain_and_reset_recommended>${drain}</drain_and_reset_recommended></gpu_reset_status>`;
  return major < 565 ? status : `${status}<gpu_recovery_action>${gpu.recovery ?? "None"}</gpu_recovery_action>`;
}

function eccFields(gpu: XmlGpu, major: number): string {
  const errors = gpu.volatileErrors ?? "0";
  const split =
    major < 535
      ? `<sram_correctable>0</sram_correctable><sram_uncorrectable>${errors}</sram_uncorrectable>`
      : `<sram_correctable>0</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity><sram_uncorrectable_secded>${errors}</sram_uncorrectable_secded>`;
  const repairs =
    major < 590 ? "" : "<channel_repair_pending>No</channel_repair_pending><tpc_repair_pending>No</tpc_repair_pending>";
  return `<ecc_errors><volatile>${split}<dram_correctable>0</dram_correctable><dram_uncorrectable>0</dram_uncorrectable></volatile><aggregate><dram_uncorrectable>3</dram_uncorrectable></aggregate>${repairs}</ecc_errors>`;
}

/** NVIDIA's driver R535 renamed the XML element of the power limits and the fields in the element. */
function powerFields(gpu: XmlGpu, major: number): string {
  const limit = gpu.powerLimit ?? "700.00 W";
  return major < 535
    ? `<power_readings><power_limit>${limit}</power_limit><default_power_limit>700.00 W</default_power_limit></power_readings>`
    : `<gpu_power_readings><current_power_limit>${limit}</current_power_limit><default_power_limit>700.00 W</default_power_limit></gpu_power_readings>`;
}

const processFields = (gpu: XmlGpu): string =>
  (gpu.processes ?? [])
    .map(
      ({ pid, name }) =>
        `<process_info><pid>${pid}</pid><type>C</type><process_name>${name}</process_name><used_memory>500 MiB</used_memory></process_info>`,
    )
    .join("");

export function gpuXml(gpu: XmlGpu): string {
  const driver = gpu.driver ?? "575.51.02";
  const major = majorOf(driver);
  const mig = gpu.mig ?? "Disabled";
  const ecc = gpu.ecc ?? "Enabled";
  const fabric = gpu.fabric ?? { state: ABSENT, status: ABSENT };
  return `\t<gpu id="0000${gpu.pci.toUpperCase()}">
\t\t<product_name>NVIDIA H100 80GB HBM3</product_name>
\t\t<persistence_mode>${gpu.persistence ?? "Disabled"}</persistence_mode>
\t\t<mig_mode><current_mig>${mig}</current_mig><pending_mig>${mig}</pending_mig></mig_mode>
\t\t<mig_devices>\n\t\t\tNone\n\t\t</mig_devices>
\t\t<accounting_mode>${gpu.accounting ?? "Disabled"}</accounting_mode>
\t\t<serial>${gpu.serial ?? "1654523003308"}</serial>
\t\t<uuid>${gpu.uuid}</uuid>
\t\t<vbios_version>${gpu.vbios ?? "96.00.74.00.01"}</vbios_version>
\t\t${resetFields(gpu, major)}
\t\t<pci><pci_bus_id>0000${gpu.pci.toUpperCase()}</pci_bus_id></pci>
\t\t<fb_memory_usage><total>81559 MiB</total><reserved>516 MiB</reserved><used>${gpu.used ?? "4 MiB"}</used><free>81039 MiB</free></fb_memory_usage>
\t\t<compute_mode>${gpu.computeMode ?? "Default"}</compute_mode>
\t\t<ecc_mode><current_ecc>${ecc}</current_ecc><pending_ecc>${ecc}</pending_ecc></ecc_mode>
\t\t${eccFields(gpu, major)}
\t\t<retired_pages><pending_blacklist>${ABSENT}</pending_blacklist><pending_retirement>${ABSENT}</pending_retirement></retired_pages>
\t\t<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_unc>0</remapped_row_unc><remapped_row_pending>${gpu.remapPending ?? "No"}</remapped_row_pending><remapped_row_failure>${gpu.remapFailure ?? "No"}</remapped_row_failure></remapped_rows>
\t\t${powerFields(gpu, major)}
\t\t<fabric><state>${fabric.state}</state><status>${fabric.status}</status></fabric>
\t\t<processes>${processFields(gpu)}</processes>
\t</gpu>
`;
}

export const XML_HEAD = (driver: Driver, gpus: number): string => `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<timestamp>Mon Nov 23 06:00:00 2026</timestamp>
\t<driver_version>${driver}</driver_version>
\t<cuda_version>12.9</cuda_version>
\t<attached_gpus>${gpus}</attached_gpus>
`;
export const XML_TAIL = "</nvidia_smi_log>\n";

export const nvidiaXml = (gpus: readonly XmlGpu[], driver: Driver = "575.51.02"): string =>
  `${XML_HEAD(driver, gpus.length)}${gpus.map((gpu) => gpuXml({ driver, ...gpu })).join("")}${XML_TAIL}`;
