import type { GpuState } from "./gpu-state.ts";

export const aGpu = (differs: Partial<GpuState> = {}): GpuState => ({
  pci: "0000:3b:00.0",
  uuid: "GPU-1",
  serial: "7",
  vbios: "96",
  driver: "575.51.02",
  memoryTotalMib: 81_559,
  memoryUsedMib: 4,
  processes: [],
  settings: { compute_mode: "Default", persistence_mode: "Enabled", power_limit: "default" },
  faults: [],
  recommends: "none",
  group: null,
  fabric: "absent",
  ...differs,
});
