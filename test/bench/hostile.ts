import { writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KEPT_OF_A_NODE } from "../../hub/db/kept.ts";
import { CONDITION_TYPES } from "../../shared/condition-types.ts";
import { startChild } from "../support/child.ts";
import { residentMib } from "./agent-memory.ts";
import { percentile } from "./bench-hubs.ts";
import type { Figure } from "./figure.ts";
import { type MemoryHub, startMemoryHub } from "./memory-hub.ts";
import { connectAgents, enrollAgents } from "./simulated-agents.ts";

const GOOD = 200;
const HOSTILE = 5;
const QUIET_SECONDS = 20;
const ATTACK_SECONDS = 60;
/** Upper bounds for the delay, memory and database rows that an attack may cost the hub. */
const MOST_MORE_MS = 50;
const MOST_MORE_MIB = 256;
const { signals, ownConditions, hostEvents, certificates } = KEPT_OF_A_NODE;
const events = Object.values(hostEvents).reduce((sum, most) => sum + most, 0);
const MOST_ROWS = HOSTILE * (signals + ownConditions + Object.keys(CONDITION_TYPES).length + events + certificates);

interface Look {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Measures how an attack on the hub affects good agents and `/healthz`. */
export async function measureHostile(stateDir: string, port: number): Promise<Figure[]> {
  const hub = await startMemoryHub(stateDir, port);
  try {
    const agents = await enrollAgents(hub, GOOD + HOSTILE);
    const good = await connectAgents(agents.slice(HOSTILE), hub);
    let lost = 0;
    for (const socket of good) socket.once("close", () => (lost += 1));
    const quiet = await healthz(hub, QUIET_SECONDS);
    const before = { mib: residentMib(hub.pid), rows: await hub.rows() };
    const orders = join(stateDir, "orders.json");
    const { ca } = hub;
    writeFileSync(
      orders,
      JSON.stringify({ hub: { port, ca }, hosts: agents.slice(0, HOSTILE), seconds: ATTACK_SECONDS }),
    );
    const attackers = startChild({
      name: "attackers",
      script: "test/bench/attackers.ts",
      env: { ORDERS: orders },
      logFile: join(stateDir, "attackers.log"),
    });
    await attackers.ready;
    const attacked = await healthz(hub, ATTACK_SECONDS);
    const during = { mib: residentMib(hub.pid), rows: await hub.rows() };
    await attackers.gone;
    await sleep(5_000);
    const after = await healthz(hub, QUIET_SECONDS);
    const figures = figuresOf({ quiet, attacked, after, lost, before, during });
    for (const socket of good) socket.removeAllListeners("close").terminate();
    return figures;
  } finally {
    await hub.stop();
  }
}

function figuresOf(of: {
  readonly quiet: Look;
  readonly attacked: Look;
  readonly after: Look;
  readonly lost: number;
  readonly before: { readonly mib: number; readonly rows: number };
  readonly during: { readonly mib: number; readonly rows: number };
}): Figure[] {
  const { quiet, attacked, after, lost, before, during } = of;
  const note = (look: Look): string => `p50 ${look.p50.toFixed(1)} ms, max ${look.max.toFixed(0)} ms`;
  return [
    { name: "/healthz p99, 200 good agents", value: quiet.p99, unit: "ms", note: note(quiet) },
    {
      name: "/healthz p99 under attack",
      value: attacked.p99,
      unit: "ms",
      note: `${note(attacked)}; one a 20 ms, on one connection`,
      atMost: quiet.p99 + MOST_MORE_MS,
    },
    {
      name: "/healthz p99 once it has stopped",
      value: after.p99,
      unit: "ms",
      note: note(after),
      atMost: quiet.p99 + MOST_MORE_MS,
    },
    { name: "good agents lost", value: lost, unit: "agents", note: `of ${GOOD}, in ${ATTACK_SECONDS} s`, atMost: 0 },
    {
      name: "hub memory under attack",
      value: during.mib,
      unit: "MiB",
      note: `resident, at its end; ${before.mib.toFixed(0)} MiB before`,
      atMost: before.mib + MOST_MORE_MIB,
    },
    {
      name: "rows that the attack left",
      value: during.rows - before.rows,
      unit: "rows",
      note: "signals, conditions, events of nodes, certificates",
      atMost: MOST_ROWS,
    },
  ];
}

async function healthz({ port, ca }: MemoryHub, seconds: number): Promise<Look> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const took: number[] = [];
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    const began = performance.now();
    await new Promise<void>((resolve, reject) =>
      request({ host: "127.0.0.1", port, ca, path: "/healthz", agent }, (answer) =>
        answer.resume().once("end", resolve),
      )
        .once("error", reject)
        .end(),
    );
    took.push(performance.now() - began);
    await sleep(Math.max(0, 20 - (performance.now() - began)));
  }
  agent.destroy();
  return { p50: percentile(took, 0.5), p99: percentile(took, 0.99), max: Math.max(...took) };
}
