/**
 * Measures and prints the figures of docs/benchmarks.md with real processes. The benchmark program exits with status 1 when a figure exceeds its
 * bound. The arguments name the parts that it runs; without arguments it runs all parts.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { freePort } from "../support/free-port.ts";
import { removeHubState } from "../support/hub-state.ts";
import { measureAdoption } from "./adoption.ts";
import { measureAgentHealth } from "./agent-health.ts";
import { measureAgentIdle } from "./agent-idle.ts";
import { measureAgentMemory } from "./agent-memory.ts";
import { measureAudit } from "./audit.ts";
import { measureBatches } from "./batches.ts";
import { measureCliStart } from "./cli-start.ts";
import { measureConsole } from "./console.ts";
import { measureEmptyFolder } from "./empty-folder.ts";
import { measureFailover } from "./failover.ts";
import { type Figure, isHeld, printFigure } from "./figure.ts";
import { measureFleetLists } from "./fleet-lists.ts";
import { measureGpuAnswers } from "./gpu-answers.ts";
import { measureHostile } from "./hostile.ts";
import { measureHubStart } from "./hub-start.ts";
import { measureMaasRequests } from "./maas-requests.ts";
import { describeMachine } from "./machine.ts";
import { measureMetrics } from "./metrics.ts";
import { measureSignals } from "./signals.ts";
import { measureSoftReset } from "./soft-reset.ts";
import { measureStageMoves } from "./stage-moves.ts";
import { measureSweep } from "./sweep.ts";
import { measureTakeover } from "./takeover.ts";
import { measureWaitingRequests } from "./waiting-requests.ts";

const stateDir = resolve(".muster/bench");

/** The parts of the benchmark by their names, in the order in which they run. */
const PARTS: Readonly<Record<string, () => Promise<Figure[]>>> = {
  "hub-start": () => measureHubStart(join(stateDir, "start")),
  "cli-start": () => measureCliStart(join(stateDir, "cli")),
  "gpu-answers": () => measureGpuAnswers(),
  "stage-moves": () => measureStageMoves(join(stateDir, "moves")),
  // The measurements of a takeover and of MAAS requests mostly wait, so both measurements run at the same time.
  "takeover-and-maas": async () =>
    (
      await Promise.all([measureTakeover(join(stateDir, "takeover")), measureMaasRequests(join(stateDir, "maas"))])
    ).flat(),
  failover: () => measureFailover(join(stateDir, "failover")),
  "waiting-requests": () => measureWaitingRequests(join(stateDir, "waiting")),
  batches: () => measureBatches(join(stateDir, "batches")),
  sweep: () => measureSweep(join(stateDir, "sweep")),
  fleet: () => measureFleetLists(join(stateDir, "fleet")),
  signals: () => measureSignals(join(stateDir, "signals")),
  adoption: () => measureAdoption(join(stateDir, "adoption")),
  audit: () => measureAudit(join(stateDir, "audit")),
  console: () => measureConsole(join(stateDir, "console")),
  metrics: () => measureMetrics(join(stateDir, "metrics")),
  "soft-reset": () => measureSoftReset(join(stateDir, "reset")),
  "empty-folder": async () => measureEmptyFolder(join(stateDir, "empty")),
  hostile: async () => measureHostile(join(stateDir, "hostile"), await freePort()),
  "agent-memory": async () => measureAgentMemory(join(stateDir, "memory"), await freePort()),
  "agent-health": () => measureAgentHealth(),
  "agent-idle": async () => measureAgentIdle(join(stateDir, "idle"), await freePort()),
};

async function measureParts(names: readonly string[]): Promise<boolean> {
  removeHubState(stateDir);
  mkdirSync(stateDir, { recursive: true });
  let allHeld = true;
  process.stdout.write(`${describeMachine()}\n\n`);
  for (const name of names) {
    for (const figure of (await PARTS[name]?.()) ?? []) {
      process.stdout.write(`${printFigure(figure)}\n`);
      allHeld &&= isHeld(figure);
    }
  }
  return allHeld;
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0) {
  const parts = Object.keys(PARTS).join(", ");
  process.stderr.write(`The benchmark has no part ${unknown.join(", ")}. Its parts are: ${parts}.\n`);
  process.exit(2);
}
process.exit((await measureParts(asked.length === 0 ? Object.keys(PARTS) : asked)) ? 0 : 1);
