/**
 * Runs one step of NVIDIA's neutral suites against a hub, and prints its result as one JSON object. `MUSTER_URL` and `MUSTER_TOKEN_FILE` name the hub
 * and the token, as for the command line. The exit status is 0 if the step succeeded, and 1 otherwise.
 */
import { readFileSync } from "node:fs";
import { HubApi } from "../../support/hub-api.ts";
import type { StepResult } from "./step.ts";
import { stepOf } from "./steps.ts";

function readArguments(words: readonly string[]): Record<string, string> {
  const args: Record<string, string> = {};
  for (let at = 0; at < words.length; at += 2) args[(words[at] ?? "").replace(/^--/, "")] = words[at + 1] ?? "";
  return args;
}

function openHub(): HubApi {
  const { MUSTER_URL: url, MUSTER_TOKEN_FILE: file } = process.env;
  if (url === undefined || file === undefined) throw new Error("Set MUSTER_URL and MUSTER_TOKEN_FILE.");
  return new HubApi(url, readFileSync(file, "utf8").trim());
}

async function run(): Promise<StepResult> {
  const [, , name = "", ...words] = process.argv;
  const step = stepOf(name);
  if (step === undefined) throw new Error(`There is no step ${name}.`);
  return step.run(openHub(), readArguments(words));
}

const result = await run().catch((error: unknown) => ({
  success: false,
  error: error instanceof Error ? error.message : String(error),
}));
process.stdout.write(`${JSON.stringify({ platform: "muster", ...result })}\n`);
process.exit(result.success ? 0 : 1);
