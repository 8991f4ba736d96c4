import type { GpuVendor } from "../../shared/tasks/gpu-scrub.ts";

/**
 * A pattern of the unit names of services that may hold GPUs, with the mark `fabric` for services that manage NVLink. The agent stops the services
 * that hold GPUs in the order of the rules in RULES. The rule for a service stands before the rules for the services that it uses. Services with the
 * mark `fabric` keep running during a reset of NVSwitch GPUs, because the reset works with a running Fabric Manager. If the Fabric Manager is stopped
 * and started without a GPU reset in between, NVLink is unusable until a reboot.
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
 * Reads the running services that hold GPUs from the output of `systemctl list-units --type=service --plain --no-legend`. Returns the services in the
 * order in which the agent stops them. In the output of `systemctl list-units`, the first column is the unit and the third column the unit's state.
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
