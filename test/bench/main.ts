/**
 * Measures and prints the figures of docs/benchmarks.md with real processes. The benchmark program exits with status 1 when a figure exceeds its
 * bound.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { freePort } from "../support/free-port.ts";
import { removeHubState } from "../support/hub-state.ts";
import { measureAgentIdle } from "./agent-idle.ts";
import { measureAgentMemory } from "./agent-memory.ts";
import { measureBatches } from "./batches.ts";
import { measureEmptyFolder } from "./empty-folder.ts";
import { isHeld, printFigure } from "./figure.ts";
import { measureFleetLists } from "./fleet-lists.ts";
import { measureGpuAnswers } from "./gpu-answers.ts";
import { measureHostile } from "./hostile.ts";
import { measureHubStart } from "./hub-start.ts";
import { measureMaasRequests } from "./maas-requests.ts";
import { describeMachine } from "./machine.ts";
import { measureMetrics } from "./metrics.ts";
import { measureStageMoves } from "./stage-moves.ts";
import { measureSweep } from "./sweep.ts";
import { measureTakeover } from "./takeover.ts";
import { measureWaitingRequests } from "./waiting-requests.ts";

const stateDir = resolve(".muster/bench");
removeHubState(stateDir);
mkdirSync(stateDir, { recursive: true });

let allHeld = true;
process.stdout.write(`${describeMachine()}\n\n`);
for (const measure of [
  () => measureHubStart(join(stateDir, "start")),
  () => measureGpuAnswers(),
  () => measureStageMoves(join(stateDir, "moves")),
  // The measurements of a takeover and of MAAS requests mostly wait, so both measurements run at the same time.
  async () =>
    (
      await Promise.all([measureTakeover(join(stateDir, "takeover")), measureMaasRequests(join(stateDir, "maas"))])
    ).flat(),
  () => measureWaitingRequests(join(stateDir, "waiting")),
  () => measureBatches(join(stateDir, "batches")),
  () => measureSweep(join(stateDir, "sweep")),
  () => measureFleetLists(join(stateDir, "fleet")),
  () => measureMetrics(join(stateDir, "metrics")),
  async () => measureEmptyFolder(join(stateDir, "empty")),
  async () => measureHostile(join(stateDir, "hostile"), await freePort()),
  async () => measureAgentMemory(join(stateDir, "memory"), await freePort()),
  async () => measureAgentIdle(join(stateDir, "idle"), await freePort()),
]) {
  for (const figure of await measure()) {
    process.stdout.write(`${printFigure(figure)}\n`);
    allHeld &&= isHeld(figure);
  }
}
process.exit(allHeld ? 0 : 1);
