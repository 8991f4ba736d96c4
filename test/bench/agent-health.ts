import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Probe } from "../../agent/health/probe.ts";
import { healthProbes } from "../../agent/health/probes.ts";
import { JOURNAL, NVME_LOG, SMARTCTL_ATA } from "../../agent/health/recorded.fixture.ts";
import { type System, systemAt } from "../../agent/system/system.ts";
import { NvidiaHost } from "../fakes/gpu/nvidia-host.ts";
import { quietAgentLog } from "../fakes/hub/host-folder.ts";
import type { Figure } from "./figure.ts";

const TICK_MS = 10;
/** The first looks load code, and so cost more than all later ones. */
const WARM = 2;
const LOOKS = 10;
const MOST_PERCENT = 0.2;

/** The processor time of this process and of its ended children, in milliseconds. */
function spentMs(): number {
  const [, fields = ""] = readFileSync("/proc/self/stat", "utf8").split(") ");
  return fields
    .split(" ")
    .slice(11, 15)
    .reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);
}

/** The share of one core that a probe takes in its rhythm, in percent. */
async function shareOf(system: System, probe: Probe): Promise<number> {
  const look = () => probe.look({ system, skewMs: 0, wasBad: () => false });
  for (let n = 0; n < WARM; n += 1) await look();
  const before = spentMs();
  for (let n = 0; n < LOOKS; n += 1) await look();
  // The kernel counts a child's time when its parent has collected the child.
  await sleep(20);
  return ((spentMs() - before) / LOOKS / probe.everyMs) * 100;
}

async function measure(name: string, system: System, note: string): Promise<Figure[]> {
  const shares: { readonly probe: string; readonly percent: number }[] = [];
  for (const probe of healthProbes()) shares.push({ probe: probe.name, percent: await shareOf(system, probe) });
  const all = shares.reduce((sum, { percent }) => sum + percent, 0);
  const costliest = shares.toSorted((a, b) => b.percent - a.percent).slice(0, 3);
  const of = costliest.map(({ probe, percent }) => `${probe} ${percent.toFixed(4)}`).join(", ");
  return [{ name, value: all, unit: "% of a core", note: `${note}; most by ${of}`, atMost: MOST_PERCENT }];
}

/**
 * What all looks at a host's health take of one core, each in its rhythm, with the tools that they call. The stand-ins for a host with eight GPUs print
 * what the real tools print, but cost less than a real GPU driver.
 */
export async function measureAgentHealth(): Promise<Figure[]> {
  const host = new NvidiaHost({ gpus: 8 });
  try {
    host.tool("smartctl", `cat <<'J'\n${SMARTCTL_ATA}\nJ`);
    host.tool("nvme", `cat <<'J'\n${NVME_LOG}\nJ`);
    host.tool("timedatectl", "echo NTPSynchronized=yes");
    host.tool("journalctl", `cat <<'J'\n${JOURNAL}\nJ`);
    return [
      ...(await measure(
        "agent, all looks at this computer",
        systemAt("/", quietAgentLog),
        "with the tools that it has",
      )),
      ...(await measure(
        "agent, all looks at a stand-in host with 8 GPUs",
        host.system,
        "with stand-ins for the tools",
      )),
    ];
  } finally {
    host.remove();
  }
}
