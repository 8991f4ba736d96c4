/**
 * Each code for a failed overwrite of a GPU's memory has the operator's next action. The code of a GPU fault never changes, because events and
 * records contain it. The agent's message about a GPU fault says what happened to which GPU.
 */
export const GPU_FAULTS = {
  unsupported:
    "Muster overwrites the memory of NVIDIA and AMD GPUs only. Use a profile that does not require overwritten GPU memory for this host.",
  systemd_missing: "Run the host with systemd, which enforces the deadline of work in a driver.",
  driver_missing:
    "Install the package of the GPU's driver library and load its kernel module: libnvidia-compute for NVIDIA, hip-runtime-amd for AMD.",
  driver_too_old: "Install a newer NVIDIA driver, or a newer ROCm for AMD, on the host.",
  driver_mismatch: "Reboot the host, so that the kernel module and the library of the GPU's driver fit each other.",
  driver_refused:
    "Read the lines NVRM, Xid, amdgpu and kfd of `journalctl -k` on the host, and check that the module nvidia_uvm or amdgpu is loaded.",
  driver_wedged: "Reboot the host. No signal ends a process that the GPU driver blocks.",
  kernels_refused:
    "Install the compiler library of the driver's own version: libnvidia-ptxjitcompiler.so.1 for NVIDIA, libhiprtc.so for AMD.",
  fabric_down:
    "Start nvidia-fabricmanager and wait until `nvidia-smi -q` reports the state Completed of the fabric, then reset the GPUs.",
  gpu_missing:
    "Compare the GPUs of `nvidia-smi -L` or `amd-smi list` with the inventory. A GPU that left the bus needs a reset or a power cycle.",
  gpu_mismatch:
    "Compare the UUIDs of `nvidia-smi -L` or the files unique_id of amdgpu with the inventory, and turn MIG or partitions off on the GPU.",
  gpu_busy: "End the processes and services that hold the GPU, then reset the GPU.",
  memory_fault: "Take the GPU out of service: its memory or its link reported an uncorrectable error.",
  memory_mismatch: "Take the GPU out of service: its memory returned other bytes than were written.",
  counter_unreadable:
    "Run a Linux kernel whose amdgpu driver has the files mem_info_vram_total, mem_info_vram_used and mem_info_gtt_used, or install hip-runtime-amd.",
  bar_too_small:
    "Turn on Above 4G Decoding and Resizable BAR in the firmware of the host, so that the agent can read the cleared memory, or install hip-runtime-amd.",
  not_cleared:
    "Install hip-runtime-amd or a newer Linux kernel: the amdgpu driver gave memory to the agent that it had not cleared.",
  deadline_passed: "Read the agent's log on the host, reset the GPU and repeat the task with a longer deadline.",
  worker_lost: "Read the log of the unit muster-work-* on the host, and repeat the task.",
  not_committed: "Run node.gpu_fill again: no worker holds this GPU's memory for this task.",
  not_answered: "Run node.gpu_fill again: the worker released the memory before the challenge came.",
} as const;
export type GpuFault = keyof typeof GPU_FAULTS;
export const GPU_FAULT_CODES = Object.keys(GPU_FAULTS) as [GpuFault, ...GpuFault[]];
