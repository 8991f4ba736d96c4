import { Secret } from "../../shared/secret.ts";
import { RESEED_STEPS } from "../../shared/tasks/hw-sync-reseed.ts";
import type { TaskHandlers, TaskInput, TaskResult } from "../../shared/tasks/index.ts";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { cleaningStep } from "../accounts/step.ts";
import { INTERVAL_DROP_IN } from "../interval-drop-in.ts";
import { messageOf } from "../message-of.ts";
import type { System } from "../system/system.ts";

const CREDENTIALS = "/etc/maas/maas-machine-creds.yml";
const SERVICE = "maas_hardware_sync.service";
const TIMER = "maas_hardware_sync.timer";
/** The folders of MAAS's systemd units on a host, in systemd's order of precedence. */
const UNIT_FOLDERS = ["/etc/systemd/system", "/run/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"];
const OWN_UNIT_FOLDER = "/lib/systemd/system";
const OPERATORS_FOLDER = "/etc/systemd/system";
const CLOUD_CONFIG = "/etc/cloud/cloud.cfg.d";
const RELOAD_TIMEOUT_MS = 30_000;
/**
 * The time-out, in milliseconds, for a run of MAAS's hardware sync, which runs the same kind of scripts as commissioning. If a hardware sync takes
 * longer than the time-out, the sync continues, but the agent no longer waits for its end.
 */
const SYNC_TIMEOUT_MS = 60_000;

type Input = TaskInput<"node.hw_sync_reseed">;
type Reseed = TaskHandlers["node.hw_sync_reseed"];

/** Removes MAAS's token from an error message, because a failing tool may print the file with the token. */
export const hwSyncReseed =
  (system: System): Reseed =>
  async (input, run) => {
    const reply = await reseed(system)(input, run);
    if (reply.ok) return reply;
    const token = Object.values(input.machine_token ?? {}).map((part) => new Secret(part));
    return { ...reply, message: withoutCredentials(reply.message, token) };
  };

/**
 * Rewrites the credentials of MAAS's hardware sync, makes sure that its timer runs, and starts one sync at once (decision M3). The agent writes
 * MAAS's systemd units only where they are missing or unusable. A systemd drop-in sets the interval of hardware sync, because MAAS computes the
 * timer's times only once, at the deploy.
 */
const reseed =
  (system: System): Reseed =>
  async (input, run) => {
    if (input.plan === true) return { ok: true, result: await plan(system, input) };
    if (input.machine_token === null)
      return {
        ok: false,
        error: "token_missing",
        message: "The order carries no machine token: MAAS gives one only once the machine is deployed.",
      };
    let endpoint: string;
    let interval: number | null;
    try {
      run.progress({ step: "credentials" });
      endpoint = await endpointOf(system, input);
      await system.write(CREDENTIALS, credentials(endpoint, input.machine_token), 0o600);
      run.progress({ step: "units" });
      await ensureUnit(system, SERVICE, isServiceUsable, serviceUnit(new URL(endpoint).origin));
      await ensureUnit(system, TIMER, isTimerUsable, timerUnit(input.interval_seconds));
      interval = await ensureInterval(system, input.interval_seconds);
    } catch (error) {
      return {
        ok: false,
        error: "write_failed",
        message: `The hardware-sync files could not be written: ${messageOf(error)}`,
      };
    }
    run.progress({ step: "timer" });
    const failed =
      (await systemctl(system, ["daemon-reload"], RELOAD_TIMEOUT_MS)) ??
      (await systemctl(system, ["enable", TIMER], RELOAD_TIMEOUT_MS)) ??
      // A running systemd timer keeps its old times until its restart.
      (await systemctl(system, ["restart", TIMER], RELOAD_TIMEOUT_MS)) ??
      (await systemctl(system, ["is-active", TIMER], RELOAD_TIMEOUT_MS));
    if (failed !== null) return { ok: false, error: "systemd_failed", message: failed };
    run.progress({ step: "sync" });
    const syncFailed = await systemctl(system, ["start", SERVICE], SYNC_TIMEOUT_MS);
    if (syncFailed !== null && !(await isStillRunning(system)))
      return { ok: false, error: "sync_failed", message: syncFailed };
    const done = { credentials_written: true, timer_active: true, sync_started: true } as const;
    return { ok: true, result: { ...done, endpoint, interval_seconds: interval } };
  };

async function plan(system: System, input: Input): Promise<TaskResult<"node.hw_sync_reseed">> {
  const endpoint = await endpointOf(system, input);
  const isOperators = (await system.read(`${OPERATORS_FOLDER}/${TIMER}`)) !== null;
  const interval = isOperators
    ? "an operator's timer keeps its interval"
    : `the interval is ${input.interval_seconds} s`;
  const messages: Record<(typeof RESEED_STEPS)[number], string> = {
    credentials: `The file ${CREDENTIALS} would be written, for reports to ${endpoint}.`,
    units: `Missing or unusable units of hardware sync would be written; ${interval}.`,
    timer: `The timer ${TIMER} would be enabled and restarted.`,
    sync: "One hardware sync would be started.",
  };
  return {
    credentials_written: false,
    timer_active: false,
    sync_started: false,
    endpoint,
    interval_seconds: isOperators ? null : input.interval_seconds,
    steps: RESEED_STEPS.map((step) => cleaningStep(step, "host", "planned", messages[step])),
  };
}

/**
 * The address to which MAAS's hardware sync on this host reports. The host's own files name the rack controller of MAAS that this host reaches. The
 * hub knows only the MAAS region, not each host's rack controller (maas 4.4).
 */
async function endpointOf(system: System, input: Input): Promise<string> {
  const path = `/MAAS/metadata/status/${encodeURIComponent(input.system_id)}`;
  const present = /^\s*endpoint:\s*["']?(https?:\/\/[^\s"']+)/m.exec((await system.read(CREDENTIALS)) ?? "")?.[1];
  if (present !== undefined && URL.canParse(present)) return new URL(path, present).toString();
  for (const name of (await system.list(CLOUD_CONFIG)).filter((one) => one.endsWith(".cfg"))) {
    const text = (await system.read(`${CLOUD_CONFIG}/${name}`)) ?? "";
    const metadata = /metadata_url:\s*["']?(https?:\/\/[^\s"',}]+)/.exec(text)?.[1];
    if (metadata !== undefined && URL.canParse(metadata)) return new URL(path, metadata).toString();
  }
  return new URL(path, input.maas_url).toString();
}

/** Writes one of MAAS's systemd units where it is missing or unusable, but never over an operator's unit in /etc. */
async function ensureUnit(
  system: System,
  name: string,
  isUsable: (text: string) => boolean,
  ours: string,
): Promise<void> {
  for (const folder of UNIT_FOLDERS) {
    const present = await system.read(`${folder}/${name}`);
    if (present === null) continue;
    if (folder === OPERATORS_FOLDER || isUsable(present)) return;
    break;
  }
  await system.write(`${OWN_UNIT_FOLDER}/${name}`, ours, 0o644);
}

/**
 * Writes the systemd drop-in with the interval of hardware sync. Returns null, and writes nothing, if an operator's own timer for hardware sync is in
 * /etc.
 */
async function ensureInterval(system: System, seconds: number): Promise<number | null> {
  if ((await system.read(`${OPERATORS_FOLDER}/${TIMER}`)) !== null) return null;
  const wanted = intervalDropIn(seconds);
  if ((await system.read(INTERVAL_DROP_IN)) !== wanted) await system.write(INTERVAL_DROP_IN, wanted, 0o644);
  return seconds;
}

const isServiceUsable = (text: string): boolean => /^ExecStart=.*report-results.*maas-machine-creds\.yml/m.test(text);
const isTimerUsable = (text: string): boolean => /^On(Calendar|UnitActiveSec)=\S/m.test(text);

async function isStillRunning(system: System): Promise<boolean> {
  try {
    return (await system.run("systemctl", ["is-active", SERVICE], RELOAD_TIMEOUT_MS)).stdout.trim() === "activating";
  } catch {
    // `isStillRunning` only tells whether a slow hardware sync still runs.
    return false;
  }
}

/** Each value in the credentials file is a JSON string, which is also a YAML string, so no value can add YAML structure. */
const credentials = (endpoint: string, token: NonNullable<Input["machine_token"]>): string =>
  [
    "reporting:",
    "  maas:",
    `    endpoint: ${JSON.stringify(endpoint)}`,
    `    token_key: ${JSON.stringify(token.token_key)}`,
    `    token_secret: ${JSON.stringify(token.token_secret)}`,
    `    consumer_key: ${JSON.stringify(token.consumer_key)}`,
    "",
  ].join("\n");

const serviceUnit = (origin: string): string => `[Unit]
Description=Report hardware to MAAS
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
ExecStartPre=/usr/bin/wget -q -O /usr/bin/maas-run-scripts ${origin}/MAAS/maas-run-scripts
ExecStartPre=/bin/chmod 0755 /usr/bin/maas-run-scripts
ExecStart=/usr/bin/maas-run-scripts report-results --config ${CREDENTIALS}
`;

const timerUnit = (intervalSeconds: number): string => `[Unit]
Description=Report hardware to MAAS at an interval

[Timer]
OnBootSec=60s
OnUnitActiveSec=${intervalSeconds}s

[Install]
WantedBy=timers.target
`;

/** The empty `OnCalendar=` removes all times that MAAS's timer unit sets. */
const intervalDropIn = (seconds: number): string => `# Written by muster-agent: as often as the node's profile says.
[Timer]
OnCalendar=
OnBootSec=60s
OnUnitActiveSec=${seconds}s
`;

/** Runs `systemctl`, and returns a description of its failure or null. */
async function systemctl(system: System, args: readonly string[], timeoutMs: number): Promise<string | null> {
  try {
    const ran = await system.run("systemctl", args, timeoutMs);
    return ran.exitCode === 0
      ? null
      : `systemctl ${args.join(" ")} ended with status ${ran.exitCode}: ${ran.stderr.slice(-500)}`;
  } catch (error) {
    return messageOf(error);
  }
}
