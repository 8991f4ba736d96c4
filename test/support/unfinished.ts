import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { HubApi } from "./hub-api.ts";

const LAST_EVENTS = 6;
const LAST_LINES = 12;

const lastLines = (file: string): string =>
  existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-LAST_LINES).join("\n") : "no file";

/**
 * Says where each onboarding stands that is not completed: its stage, what it waits for, its last events, and the last lines of its agent's log. The
 * last lines of the hubs' logs follow. `stateDir` is the folder of the test environment.
 */
export async function tellUnfinished(api: HubApi, stateDir: string): Promise<string> {
  const unfinished = (await api.onboardings()).filter(({ status }) => status !== "completed");
  const told = await Promise.all(unfinished.map(({ onboarding_id: id }) => tellOne(api, stateDir, id)));
  const logs = globSync(join(stateDir, "hub*.log")).map((file) => `${file}:\n${lastLines(file)}`);
  return [`${unfinished.length} onboardings are not completed`, ...told.flat(), ...logs].join("\n");
}

async function tellOne(api: HubApi, stateDir: string, id: string): Promise<string[]> {
  const { events, hostname, ...now } = await api.onboarding(id);
  const { status, current_stage, current_attempt, waiting_for, error_code, error_message, updated_at } = now;
  const state = {
    hostname,
    status,
    current_stage,
    current_attempt,
    waiting_for,
    error_code,
    error_message,
    updated_at,
  };
  const log = join(stateDir, "hosts", hostname, "var/log/muster-agent.service.log");
  return [
    JSON.stringify(state),
    ...events.slice(-LAST_EVENTS).map((event) => JSON.stringify(event)),
    `${log}:\n${lastLines(log)}`,
  ];
}
