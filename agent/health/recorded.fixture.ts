/**
 * Recorded outputs of the tools by which the agent checks a host's health, in the forms that the tools print. In the recorded outputs of tools,
 * serial numbers and addresses are made up, and parts that the agent does not read are left out.
 */

/** An output of `nvidia-smi -q -x` of driver 575 for one H100, without the parts about processes and clocks. */
export const NVIDIA_H100 = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>575.51.02</driver_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:18:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<clocks_event_reasons>
			<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
			<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
			<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
			<clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
			<clocks_event_reason_hw_power_brake_slowdown>Not Active</clocks_event_reason_hw_power_brake_slowdown>
			<clocks_event_reason_sw_thermal_slowdown>Not Active</clocks_event_reason_sw_thermal_slowdown>
		</clocks_event_reasons>
		<ecc_errors>
			<volatile>
				<sram_correctable>0</sram_correctable>
				<sram_uncorrectable_parity>0</sram_uncorrectable_parity>
				<sram_uncorrectable_secded>0</sram_uncorrectable_secded>
				<dram_correctable>0</dram_correctable>
				<dram_uncorrectable>0</dram_uncorrectable>
			</volatile>
			<aggregate>
				<sram_correctable>2</sram_correctable>
				<sram_uncorrectable_parity>0</sram_uncorrectable_parity>
				<sram_uncorrectable_secded>0</sram_uncorrectable_secded>
				<dram_correctable>41</dram_correctable>
				<dram_uncorrectable>1</dram_uncorrectable>
				<sram_threshold_exceeded>No</sram_threshold_exceeded>
			</aggregate>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_corr>0</remapped_row_corr>
			<remapped_row_unc>1</remapped_row_unc>
			<remapped_row_pending>No</remapped_row_pending>
			<remapped_row_failure>No</remapped_row_failure>
		</remapped_rows>
		<temperature>
			<gpu_temp>67 C</gpu_temp>
			<gpu_temp_tlimit>20 C</gpu_temp_tlimit>
			<gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>
			<gpu_temp_slow_threshold>87 C</gpu_temp_slow_threshold>
			<memory_temp>71 C</memory_temp>
		</temperature>
		<pci><pci_bus_id>00000000:18:00.0</pci_bus_id></pci>
	</gpu>
</nvidia_smi_log>
`;

/** The output of `smartctl --json=c -H -A /dev/sda` of smartmontools 7.4 for a SATA SSD. */
export const SMARTCTL_ATA = `{"json_format_version":[1,0],"smartctl":{"version":[7,4],"exit_status":0},
"device":{"name":"/dev/sda","info_name":"/dev/sda [SAT]","type":"sat","protocol":"ATA"},
"smart_status":{"passed":true},
"ata_smart_attributes":{"revision":1,"table":[
{"id":5,"name":"Reallocated_Sector_Ct","value":100,"worst":100,"thresh":10,"when_failed":"","raw":{"value":0,"string":"0"}},
{"id":197,"name":"Current_Pending_Sector","value":100,"worst":100,"thresh":0,"when_failed":"","raw":{"value":0,"string":"0"}},
{"id":198,"name":"Offline_Uncorrectable","value":100,"worst":100,"thresh":0,"when_failed":"","raw":{"value":0,"string":"0"}}]},
"temperature":{"current":31}}`;

/** The output of `smartctl --json=c -H -A /dev/nvme0n1` of smartmontools 7.4. */
export const SMARTCTL_NVME = `{"json_format_version":[1,0],"smartctl":{"version":[7,4],"exit_status":0},
"device":{"name":"/dev/nvme0n1","info_name":"/dev/nvme0n1","type":"nvme","protocol":"NVMe"},
"smart_status":{"passed":true,"nvme":{"value":0}},
"nvme_smart_health_information_log":{"critical_warning":0,"temperature":38,"available_spare":100,"available_spare_threshold":10,
"percentage_used":3,"data_units_read":48213211,"media_errors":0,"num_err_log_entries":12}}`;

/** The output of `nvme smart-log /dev/nvme0n1 -o json` of nvme-cli 2.8. */
export const NVME_LOG = `{"critical_warning":0,"temperature":311,"avail_spare":100,"spare_thresh":10,"percent_used":3,
"endurance_grp_critical_warning_summary":0,"data_units_read":"48213211","media_errors":0,"num_err_log_entries":12}`;

/** With its option for verbose output, nvme-cli 2.11 prints the critical warning as an object with one field for each bit. */
export const NVME_LOG_VERBOSE = `{"critical_warning":{"value":4,"available_spare":0,"temp_threshold":0,"reliability_degraded":1,"ro":0,
"vmbu_failed":0,"pmr_ro":0},"avail_spare":71,"spare_thresh":10,"percent_used":97,"media_errors":"18"}`;

const entry = (cursor: string, message: string): string =>
  JSON.stringify({
    __CURSOR: `s=0a;i=${cursor};b=5f;m=1;t=2;x=3`,
    __MONOTONIC_TIMESTAMP: `${cursor}000000`,
    PRIORITY: "3",
    MESSAGE: message,
  });

/** An output of `journalctl -k -o json --output-fields=MESSAGE`, with lines of the kernel and of NVIDIA's driver as they appear in bug reports. */
export const JOURNAL = [
  entry("1", "NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
  entry("2", "NVRM: Xid (PCI:0000:2a:00): 31, pid=41123, name=python3, Ch 0000000e, intr 00000000. MMU Fault"),
  entry(
    "3",
    "NVRM: Xid (PCI:0000:2a:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x1) marked for remapping",
  ),
  entry("4", "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400"),
  entry("5", "Out of memory: Killed process 9021 (python3) total-vm:1024kB"),
].join("\n");

/** What `grep -Hs ""` prints of the files `ras/umc_err_count` and `ras/xgmi_wafl_err_count` of AMD GPUs. */
export const RAS_COUNTS = `/sys/bus/pci/devices/0000:05:00.0/ras/umc_err_count:ue: 0
/sys/bus/pci/devices/0000:05:00.0/ras/umc_err_count:ce: 0
/sys/bus/pci/devices/0000:15:00.0/ras/umc_err_count:ue: 2
/sys/bus/pci/devices/0000:15:00.0/ras/umc_err_count:ce: 7
/sys/bus/pci/devices/0000:15:00.0/ras/xgmi_wafl_err_count:ue: 0
/sys/bus/pci/devices/0000:15:00.0/ras/xgmi_wafl_err_count:ce: 0
`;
