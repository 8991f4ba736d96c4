/**
 * The codes for why the agent could not overwrite the memory of a GPU, each with the operator's next action. The code of a GPU fault never changes.
 * The agent's message about a GPU fault says what happened to which GPU.
 */
export const GPU_FAULTS = {
  unsupported:
    "Muster overwrites the memory of NVIDIA GPUs only. Use a profile that does not require overwritten GPU memory for this host.",
  systemd_missing: "Run the host with systemd, which enforces the deadline of work in a driver.",
  driver_missing:
    "Install NVIDIA's driver package that contains libcuda.so.1 (libnvidia-compute), and load its kernel module.",
  driver_too_old: "Install a newer NVIDIA driver on the host.",
  driver_mismatch:
    "Reboot the host, so that the kernel module and the library of the NVIDIA driver have the same version.",
  driver_refused:
    "Read the NVRM and Xid lines of `journalctl -k` on the host, and check that the module nvidia_uvm is loaded.",
  driver_wedged: "Reboot the host. No signal ends a process that the GPU driver blocks.",
  kernels_refused:
    "Install the driver's compiler library libnvidia-ptxjitcompiler.so.1 of the same version as libcuda.so.1.",
  fabric_down:
    "Start nvidia-fabricmanager and wait until `nvidia-smi -q` reports the state Completed of the fabric, then reset the GPUs.",
  gpu_missing:
    "Compare the GPUs of `nvidia-smi -L` with the inventory. A GPU that left the bus needs a reset or a power cycle.",
  gpu_mismatch: "Compare the UUIDs of `nvidia-smi -L` with the inventory, and turn MIG off on the GPU.",
  gpu_busy: "End the processes and services that hold the GPU, then reset the GPU.",
  memory_fault: "Take the GPU out of service: its memory or its link reported an uncorrectable error.",
  memory_mismatch: "Take the GPU out of service: its memory returned other bytes than were written.",
  deadline_passed: "Read the agent's log on the host, reset the GPU and repeat the task with a longer deadline.",
  worker_lost: "Read the log of the unit muster-work-* on the host, and repeat the task.",
  not_committed: "Run node.gpu_fill again: no worker holds this GPU's memory for this task.",
  not_answered: "Run node.gpu_fill again: the worker released the memory before the challenge came.",
} as const;
export type GpuFault = keyof typeof GPU_FAULTS;
export const GPU_FAULT_CODES = Object.keys(GPU_FAULTS) as [GpuFault, ...GpuFault[]];
