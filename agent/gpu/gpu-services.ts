import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/**
 * A pattern of unit names of services that may hold GPUs; the mark `fabric` means services that manage NVLink. The agent stops services in the order
 * of RULES, in which a service stands before the services that it uses. Services with the mark `fabric` keep running during a reset of GPUs with
 * NVSwitch, because the reset does not require a stop of the Fabric Manager. After a stop and start of the Fabric Manager without a GPU reset in
 * between, NVLink is unusable until a reboot.
 */
interface ServiceRule {
  readonly unit: RegExp;
  readonly fabric: boolean;
}
const rule = (unit: RegExp, fabric = false): ServiceRule => ({ unit, fabric });

const DISPLAY_MANAGERS = rule(/^(display-manager|gdm3?|lightdm|sddm|xdm|lxdm)$/);
const RULES: Readonly<Record<GpuVendor, readonly ServiceRule[]>> = {
  nvidia: [
    rule(/^kubelet$/),
    rule(/^(nvidia-)?dcgm-exporter$/),
    rule(/^(nvidia-dcgm|dcgm|nv-hostengine)$/),
    rule(/^nvsm(-.+)?$/),
    rule(/^nv_peer_mem$/),
    DISPLAY_MANAGERS,
    rule(/^nvidia-(cuda-)?mps(-control)?$/),
    rule(/^nvidia-persistenced$/),
    rule(/^nvidia-imex$/),
    rule(/^nvidia-fabricmanager$/, true),
    rule(/^nvlsm$/, true),
  ],
  amd: [rule(/^kubelet$/), rule(/^(amd-metrics-exporter|rdc)$/), DISPLAY_MANAGERS],
};

export interface GpuService {
  readonly unit: string;
  readonly fabric: boolean;
}

/**
 * Reads the running services that hold GPUs from the output of `systemctl list-units --type=service --plain --no-legend`. Returns the services that
 * hold GPUs in the order in which the agent stops them. In the output of `systemctl list-units`, the first column is the unit and the third column
 * its state.
 */
export function runningServices(vendor: GpuVendor, listUnits: string): readonly GpuService[] {
  const running = listUnits.split("\n").flatMap((line) => {
    const [unit = "", , active] = line.trim().split(/\s+/);
    const isRunning = active === "active" || active === "activating" || active === "reloading";
    return isRunning && unit.endsWith(".service") ? [unit] : [];
  });
  return RULES[vendor].flatMap(({ unit: pattern, fabric }) =>
    running.filter((unit) => pattern.test(unit.slice(0, -".service".length))).map((unit) => ({ unit, fabric })),
  );
}
