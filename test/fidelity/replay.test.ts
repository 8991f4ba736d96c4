import { describe, expect, test } from "vitest";
import type { MaasSimulator } from "../fakes/maas/simulator.ts";
import { startMaasSimulator } from "../fakes/maas/simulator.ts";
import type { MaasVersion } from "../fakes/maas/state/model.ts";
import { NEEDED_EXCHANGES } from "./needed-operations.ts";
import { BY_HAND, seedRecordedSite } from "./recorded-state.ts";
import type { Callers } from "./replay.ts";
import { keyOf, replay, Translation } from "./replay.ts";
import type { Exchange } from "./samples.ts";
import { haveSamples, loadExchange, loadExchanges, samplesFolder, VERSIONS } from "./samples.ts";

const present = haveSamples();
if (!present)
  process.stdout.write(
    `No recordings in ${samplesFolder}: the replay against them is skipped. Name their folder in MUSTER_MAAS_SAMPLES.\n`,
  );

/**
 * A speed of the simulator at which no simulated machine changes by itself, for example at the end of a deploy. Between the recorded requests, the
 * functions in `BY_HAND` make the changes that a person made during the recording.
 */
const STANDSTILL = 1e-6;

const OTHER_USER = { username: "bob", key: "fidelityOther01:fidelityToken02:fidelityOtherSecret000000000000" } as const;

function lastWord(exchange: Exchange | undefined, pattern: RegExp): string {
  const word = pattern.exec(String(exchange?.body))?.[1];
  if (word === undefined) throw new Error(`The recording of ${exchange?.name ?? "?"} does not name what was sent.`);
  return word;
}

async function startRecorded(
  version: MaasVersion,
  exchanges: readonly Exchange[],
): Promise<{ simulator: MaasSimulator; callers: Callers }> {
  const find = (name: string): Exchange | undefined => exchanges.find((one) => one.name === name);
  const secret = lastWord(find("bad-secret"), /string: &(\w+)/);
  const apiKey = `fidelityAdmin01:fidelityToken01:${secret}`;
  const simulator = await startMaasSimulator({ version, speed: STANDSTILL, apiKey });
  seedRecordedSite(simulator.sim.region);
  return {
    simulator,
    callers: {
      admin: keyOf(apiKey),
      other: keyOf(OTHER_USER.key),
      wrongToken: lastWord(find("bad-token"), /token: (\w+)/),
    },
  };
}

/** Stores the simulator's id of each recorded machine, because a recorded request may name a machine before an answer shows it. */
function introduce(simulator: MaasSimulator, exchanges: readonly Exchange[], translation: Translation): void {
  for (const { body } of exchanges) {
    for (const one of Array.isArray(body) ? body : [body]) {
      if (typeof one !== "object" || one === null || !("system_id" in one) || !("hostname" in one)) continue;
      const ours = simulator.sim.region.state.machines.find((machine) => machine.hostname === one.hostname);
      if (ours !== undefined) translation.know(String(one.system_id), ours.systemId);
    }
  }
}

async function replayAll(version: MaasVersion): Promise<{ exchanges: Exchange[]; differences: Map<string, string[]> }> {
  const exchanges = loadExchanges(version);
  const { simulator, callers } = await startRecorded(version, exchanges);
  const translation = new Translation();
  const differences = new Map<string, string[]>();
  const takenAddress = loadExchange(version, "link-subnet-really-taken-ip");
  try {
    for (const exchange of exchanges) {
      BY_HAND[exchange.name]?.(simulator.sim.region);
      introduce(simulator, exchanges, translation);
      const { users } = simulator.sim.region.state;
      const bob = users.find((user) => user.username === OTHER_USER.username);
      if (bob !== undefined && bob.tokens.length === 0) {
        const { consumer, token, secret } = callers.other;
        bob.tokens.push({ name: "other", consumer_key: consumer, token_key: token, token_secret: secret });
      }
      differences.set(exchange.name, await replay(simulator, exchange, callers, translation));
      if (takenAddress !== null && exchange.name === "link-subnet-taken-ip")
        differences.set(takenAddress.name, await replayTaken(simulator, takenAddress, callers));
    }
  } finally {
    await simulator.close();
  }
  return { exchanges: takenAddress === null ? exchanges : [...exchanges, takenAddress], differences };
}

/** MAAS's refusal of an IP address in use was recorded with another machine than the rest of the recording. */
async function replayTaken(simulator: MaasSimulator, exchange: Exchange, callers: Callers): Promise<string[]> {
  const machine = simulator.sim.region.state.machines.find((one) => one.hostname === "s-renamed");
  const nic = machine?.interfaces[1];
  const address = nic?.links[0]?.ipAddress;
  const request = {
    ...exchange.request,
    url: `/MAAS/api/2.0/nodes/${machine?.systemId ?? ""}/interfaces/${nic?.id ?? 0}/?op=link_subnet`,
    body: `mode=STATIC&subnet=3&ip_address=${address ?? ""}`,
  };
  return replay(simulator, { ...exchange, request }, callers, new Translation());
}

describe.skipIf(!present)("the simulator answers as a region was recorded to answer", () => {
  test.each(VERSIONS)("%s", async (version) => {
    const { exchanges, differences } = await replayAll(version);
    const isMatched = (exchange: Exchange): boolean => differences.get(exchange.name)?.length === 0;
    const matched = exchanges.filter(isMatched);
    const needed = exchanges.filter((exchange) => NEEDED_EXCHANGES.includes(exchange.name));
    const neededMatched = needed.filter(isMatched);
    const listed = exchanges.filter((exchange) => exchange.name !== "link-subnet-really-taken-ip");
    process.stdout.write(
      `${version}: matched ${listed.filter(isMatched).length} of ${listed.length} exchanges (${neededMatched.length} of ${needed.length} that our client's operations need)\n`,
    );
    const unmatched = exchanges.filter((exchange) => !isMatched(exchange));
    for (const { name } of unmatched)
      process.stdout.write(`  ${name}: ${(differences.get(name) ?? []).slice(0, 6).join("; ")}\n`);
    expect(matched.length + unmatched.length).toBe(exchanges.length);
    expect(NEEDED_EXCHANGES.filter((name) => !exchanges.some((exchange) => exchange.name === name))).toEqual([]);
    expect(
      needed
        .filter((exchange) => !isMatched(exchange))
        .map(({ name }) => ({ name, differences: differences.get(name) })),
    ).toEqual([]);
  });
});
