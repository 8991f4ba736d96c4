/**
 * The shapes of amd-smi's outputs in releases of ROCm, reduced to the fields that the agent reads. Each sample of amd-smi's outputs names its source:
 * an output that an operator published, a sample in public tests, or the source code of amd-smi. Most sources show only one or two of the four
 * outputs of amd-smi that the agent reads. If a source lacks one of amd-smi's four outputs, the sample in this file takes the shape of this output
 * from the nearest release of ROCm. The serial numbers, addresses and error counts in the samples of amd-smi's outputs are made up.
 */
interface AmdSmiSample {
  readonly name: string;
  readonly source: "published output" | "public tests" | "source code of amd-smi";
  /** Since ROCm 7, amd-smi prints the rows of the commands `static` and `metric` within an object. */
  readonly isWrapped: boolean;
  readonly static: object;
  readonly metric: object;
  readonly badPages: object;
  readonly process: object;
  readonly told: {
    readonly serial: string | null;
    readonly vbios: string | null;
    readonly driver: string | null;
    readonly processes?: readonly object[];
    readonly faults?: readonly string[];
  };
}

const BDF = "0000:05:00.0";
const NO_PAGES = { retired: "No bad pages found.", pending: "No bad pages found.", un_res: "No bad pages found." };
const NO_TABLE = { retired: "N/A", pending: "N/A", un_res: "N/A" };
const IDLE = { process_list: [{ process_info: "No running processes detected" }] };
const ZERO = { total_correctable_count: 0, total_uncorrectable_count: 0, total_deferred_count: 0 };
const NO_RAS = { eeprom_version: "N/A", parity_schema: "N/A", poison_schema: "N/A", ecc_block_state: "N/A" };
const BLOCKS = { UMC: "ENABLED", SDMA: "ENABLED", GFX: "ENABLED", MMHUB: "ENABLED", XGMI_WAFL: "ENABLED" };
const VBIOS = {
  name: "113-M3000100",
  build_date: "2024/05/01 00:00",
  part_number: "113-M3000100-102",
  version: "022.040",
};

export const AMD_SMI_SAMPLES: readonly AmdSmiSample[] = [
  {
    name: "an MI300X on ROCm 6, whose links print the whole name of their state",
    source: "source code of amd-smi",
    isWrapped: false,
    static: {
      asic: { market_name: "MI300X", asic_serial: "0x7A9F", oam_id: 1 },
      bus: { bdf: BDF, slot_type: "OAM" },
      vbios: VBIOS,
      driver: { name: "amdgpu", version: "6.8.5" },
      ras: { ...NO_RAS, eeprom_version: "0x30000", ecc_block_state: BLOCKS },
    },
    metric: {
      ecc: { total_correctable_count: 3, total_uncorrectable_count: 0, cache_correctable_count: 0 },
      ecc_blocks: { UMC: { correctable_count: 3, uncorrectable_count: 0 } },
      xgmi_err: "AMDSMI_XGMI_STATUS_NO_ERRORS",
    },
    badPages: NO_PAGES,
    process: IDLE,
    told: { serial: "0x7A9F", vbios: "022.040", driver: "6.8.5" },
  },
  {
    name: "an MI300X on ROCm 6 with errors on its links and a firmware that amd-smi cannot read",
    source: "source code of amd-smi",
    isWrapped: false,
    static: {
      asic: { market_name: "MI300X", asic_serial: "0x7A9F", oam_id: 1 },
      bus: { bdf: BDF },
      vbios: "N/A",
      driver: { name: "amdgpu", version: "6.8.5" },
      ras: { ...NO_RAS, ecc_block_state: BLOCKS },
    },
    metric: { ecc: ZERO, xgmi_err: "AMDSMI_XGMI_STATUS_MULTIPLE_ERRORS" },
    badPages: NO_TABLE,
    process: IDLE,
    told: {
      serial: "0x7A9F",
      vbios: null,
      driver: "6.8.5",
      // For a GPU with error correction, amd-smi must print the list of bad pages.
      faults: [
        "pages wait for their retirement",
        "pages could not be retired",
        'xgmi_err is "AMDSMI_XGMI_STATUS_MULTIPLE_ERRORS"',
      ],
    },
  },
  {
    name: "a Radeon RX 6600 without error correction, with the amdgpu driver of the kernel",
    source: "published output",
    isWrapped: false,
    static: {
      asic: { market_name: "Navi 23", asic_serial: "N/A", oam_id: "N/A" },
      bus: { bdf: BDF, slot_type: "CEM" },
      vbios: { name: "73FFHB", build_date: "2021/12/01 00:51", part_number: "115-D534P00-100", version: "020.003" },
      driver: { name: "amdgpu", version: "7.0.0-3-pve" },
      ras: NO_RAS,
    },
    metric: { ecc: { ...ZERO, cache_correctable_count: "N/A" }, ecc_blocks: "N/A", xgmi_err: "N/A" },
    badPages: NO_TABLE,
    process: IDLE,
    told: { serial: null, vbios: "020.003", driver: "7.0.0-3-pve" },
  },
  {
    name: "a Strix Halo, whose kernel is of a Linux distribution",
    source: "published output",
    isWrapped: false,
    static: {
      asic: { market_name: "Strix Halo", asic_serial: "0x0000000000000000", oam_id: "N/A" },
      bus: { bdf: BDF },
      vbios: { name: "N/A", build_date: "N/A", part_number: "113-STRXLGEN-001", version: "N/A" },
      driver: { name: "amdgpu", version: "6.17.1-300.fc43.x86_64" },
      ras: NO_RAS,
    },
    metric: { ecc: { total_correctable_count: "N/A", total_uncorrectable_count: "N/A" }, xgmi_err: "N/A" },
    badPages: NO_TABLE,
    process: { process_list: [{ process_info: { name: "python3", pid: 42, mem: { value: 1, unit: "B" } } }] },
    told: {
      serial: "0x0000000000000000",
      vbios: "113-STRXLGEN-001",
      driver: "6.17.1-300.fc43.x86_64",
      processes: [{ pid: 42, name: "python3" }],
    },
  },
  {
    name: "a Radeon with 30,576 MB on ROCm 7, whose memory alone counts errors",
    source: "published output",
    isWrapped: true,
    static: {
      asic: { market_name: "Radeon", asic_serial: "0x5D23", oam_id: "N/A" },
      bus: { bdf: BDF, slot_type: "CEM" },
      ifwi: { ...VBIOS, version: "023.008" },
      driver: { name: "amdgpu", version: "6.16.6" },
      ras: { ...NO_RAS, ecc_block_state: { UMC: "ENABLED" } },
    },
    metric: { ecc: ZERO, ecc_blocks: { UMC: { uncorrectable_count: 0 } }, xgmi_err: "N/A" },
    badPages: NO_PAGES,
    process: IDLE,
    told: { serial: "0x5D23", vbios: "023.008", driver: "6.16.6" },
  },
  {
    name: "an MI350X on ROCm 7.2, which names its driver's version otherwise",
    source: "public tests",
    isWrapped: true,
    static: {
      asic: { market_name: "AMD Instinct MI350X", asic_serial: "0xA1", oam_id: 6, target_graphics_version: "gfx950" },
      bus: { bdf: BDF, pcie_interface_version: "Gen 5", slot_type: "OAM" },
      ifwi: "N/A",
      driver: { driver_name: "amdgpu", driver_version: "6.12.12", os_kernel_version: "6.8.0" },
      ras: { ...NO_RAS, single_bit_schema: "ENABLED", ecc_block_state: {} },
    },
    metric: { ecc: ZERO, ecc_blocks: {}, voltage_curve: null, xgmi_err: "N/A" },
    badPages: NO_PAGES,
    process: IDLE,
    told: { serial: "0xA1", vbios: null, driver: "6.12.12" },
  },
  {
    name: "an MI300X on ROCm 10.1 with errors in its memory",
    source: "public tests",
    isWrapped: true,
    static: {
      asic: { market_name: "AMD Instinct MI300X", asic_serial: "0x6F1F" },
      bus: { bdf: BDF },
      driver: { name: "amdgpu", version: "6.19.14" },
      ras: { ...NO_RAS, ecc_block_state: BLOCKS },
    },
    metric: { ecc: { ...ZERO, total_uncorrectable_count: 2, total_deferred_count: 1 }, xgmi_err: "N/A" },
    badPages: { ...NO_PAGES, pending: [{ page_address: "0x1000", page_size: "4096", status: "PENDING" }] },
    process: IDLE,
    told: {
      serial: "0x6F1F",
      vbios: null,
      driver: "6.19.14",
      faults: ["total_uncorrectable_count is 2", "total_deferred_count is 1", "pages wait for their retirement"],
    },
  },
];
