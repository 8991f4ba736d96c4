import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HubApi } from "./hub-api.ts";

const LAST_EVENTS = 6;
const LAST_LINES = 12;

const lastLines = (file: string): string =>
  existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-LAST_LINES).join("\n") : "no file";

/**
 * Says where each node stands that is not active, and each onboarding that is not completed: what it waits for, its last events, and the last lines of
 * its agent's log. The last lines of the hubs' logs follow. `stateDir` is the folder of the test environment.
 */
export async function tellUnfinished(api: HubApi, stateDir: string): Promise<string> {
  const unfinished = (await api.onboardings()).filter(({ status }) => status !== "completed");
  const inactive = (await api.nodes()).filter(({ status }) => status !== "active");
  const logs = globSync(join(stateDir, "hub*.log")).map((file) => `${file}:\n${lastLines(file)}`);
  return [
    `${unfinished.length} onboardings are not completed`,
    ...(await Promise.all(unfinished.map((one) => tellOnboarding(api, one.onboarding_id)))).flat(),
    `${inactive.length} nodes are not active`,
    ...(await Promise.all(inactive.map((one) => tellNode(api, stateDir, one.id)))).flat(),
    ...logs,
  ].join("\n");
}

async function tellOnboarding(api: HubApi, id: string): Promise<string[]> {
  const { events, hostname, status, ...now } = await api.onboarding(id);
  const { current_stage, current_attempt, waiting_for, error_code, error_message, updated_at } = now;
  const state = { current_stage, current_attempt, waiting_for, error_code, error_message, updated_at };
  return [
    `${hostname} ${status} ${JSON.stringify(state)}`,
    ...events.slice(-LAST_EVENTS).map((one) => JSON.stringify(one)),
  ];
}

async function tellNode(api: HubApi, stateDir: string, id: string): Promise<string[]> {
  const { hostname, status, conditions, events } = await api.node(id);
  const log = join(stateDir, "hosts", hostname, "var/log/muster-agent.service.log");
  return [
    `${hostname} is ${status}`,
    ...conditions.filter((one) => one.status !== "True").map((one) => JSON.stringify(one)),
    ...events.slice(0, LAST_EVENTS).map((one) => JSON.stringify(one)),
    `${log}:\n${lastLines(log)}`,
  ];
}
