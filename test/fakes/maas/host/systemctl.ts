import { readFileSync } from "node:fs";
import { join } from "node:path";
import { HW_SYNC_SERVICE, syncHardware } from "./hardware-sync.ts";

/**
 * The program `systemctl` of a simulated host, which itself runs the systemd unit of hardware sync. For every other unit, the simulated `systemctl`
 * calls the host's supervisor in the simulator over HTTP.
 */
const ACTIONS = [
  "start",
  "stop",
  "restart",
  "try-restart",
  "reload-or-restart",
  "enable",
  "disable",
  "is-active",
  "is-enabled",
  "reset-failed",
];

const root = process.env["SIM_HOST_ROOT"];
if (root === undefined)
  throw new Error("SIM_HOST_ROOT is not set: run the systemctl in the usr/bin of a simulated host.");

const [action, ...words] = process.argv
  .slice(2)
  .filter((word) => !["--quiet", "-q", "--no-block", "--system", "--no-pager", "--no-ask-password"].includes(word));
const now = words.includes("--now");
const units = words
  .filter((word) => !word.startsWith("-"))
  .map((unit) => (/\.\w+$/.test(unit) ? unit : `${unit}.service`));

async function ask(what: string, unit: string): Promise<number> {
  const host = JSON.parse(readFileSync(join(root ?? "/", "run/simulated-host.json"), "utf8")) as {
    control: string;
    system_id: string;
  };
  const response = await fetch(`${host.control}/hosts/${host.system_id}/units`, {
    method: "POST",
    body: JSON.stringify({ action: what, unit }),
  });
  if (!response.ok) throw new Error(`The simulator answered ${response.status} to ${what} ${unit}.`);
  const { code, output } = (await response.json()) as { code: number; output: string };
  if (output !== "") (code === 0 || what.startsWith("is-") ? process.stdout : process.stderr).write(`${output}\n`);
  return code;
}

async function perform(what: string, unit: string): Promise<number> {
  if (unit === HW_SYNC_SERVICE && (what === "start" || what === "restart")) {
    await syncHardware(root ?? "/");
    return 0;
  }
  const code = await ask(what, unit);
  return code === 0 && now && (what === "enable" || what === "disable")
    ? perform(what === "enable" ? "start" : "stop", unit)
    : code;
}

async function main(): Promise<number> {
  if (action === "daemon-reload") return 0;
  if (action === undefined || !ACTIONS.includes(action) || units.length === 0) {
    process.stderr.write(
      `The simulated systemctl knows daemon-reload and ${ACTIONS.join(", ")}, each with units; it was called with: ${process.argv.slice(2).join(" ")}\n`,
    );
    return 1;
  }
  if (action === "reset-failed") return 0;
  let worst = 0;
  for (const unit of units) worst = Math.max(worst, await perform(action, unit));
  return worst;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(
    `Job for ${units.join(" ")} failed: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exitCode = 1;
}
