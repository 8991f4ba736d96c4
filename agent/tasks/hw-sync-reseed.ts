import type { TaskHandlers, TaskInput } from "../../shared/tasks/index.ts";
import type { System } from "../system/system.ts";

const CREDENTIALS = "/etc/maas/maas-machine-creds.yml";
const SERVICE = "/lib/systemd/system/maas_hardware_sync.service";
const TIMER = "/lib/systemd/system/maas_hardware_sync.timer";
const RELOAD_TIMEOUT_MS = 30_000;
/** One sync runs commissioning-like scripts; MAAS gives them minutes. */
const SYNC_TIMEOUT_MS = 90_000;

type Input = TaskInput<"node.hw_sync_reseed">;
type Reseed = TaskHandlers["node.hw_sync_reseed"];

/**
 * Rewrites the credentials of MAAS's hardware sync, makes sure that its timer runs, and starts one sync at once (decision M3). MAAS's own units
 * are left as they are; they are written only where they are missing. Harmless to repeat.
 */
export const hwSyncReseed =
  (system: System): Reseed =>
  async (input, run) => {
    if (input.machine_token === null)
      return {
        ok: false,
        error: "token_missing",
        message: "The order carries no machine token: MAAS gives one only once the machine is deployed.",
      };
    const endpoint = await endpointOf(system, input);
    run.progress({ step: "credentials" });
    try {
      await system.write(CREDENTIALS, credentials(endpoint, input.machine_token), 0o600);
      run.progress({ step: "units" });
      if (!(await system.present(SERVICE))) await system.write(SERVICE, serviceUnit(new URL(endpoint).origin), 0o644);
      if (!(await system.present(TIMER))) await system.write(TIMER, timerUnit(input.interval_seconds), 0o644);
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
      (await systemctl(system, ["enable", "--now", "maas_hardware_sync.timer"], RELOAD_TIMEOUT_MS));
    if (failed !== null) return { ok: false, error: "systemd_failed", message: failed };
    run.progress({ step: "sync" });
    const syncFailed = await systemctl(system, ["start", "maas_hardware_sync.service"], SYNC_TIMEOUT_MS);
    if (syncFailed !== null) return { ok: false, error: "sync_failed", message: syncFailed };
    return { ok: true, result: { credentials_written: true, timer_active: true, sync_started: true, endpoint } };
  };

/** The host's own file knows the rack that this host reaches; the hub knows only the region (contract 4.4). */
async function endpointOf(system: System, input: Input): Promise<string> {
  const present = /^\s*endpoint:\s*["']?(https?:\/\/[^\s"']+)/m.exec((await system.read(CREDENTIALS)) ?? "")?.[1];
  const path = `/MAAS/metadata/status/${encodeURIComponent(input.system_id)}`;
  const base = present !== undefined && URL.canParse(present) ? present : input.maas_url;
  return new URL(path, base).toString();
}

/** A JSON string is a YAML string, so no value can become anything else. */
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
OnActiveSec=${intervalSeconds}s
OnUnitActiveSec=${intervalSeconds}s
Persistent=true

[Install]
WantedBy=timers.target
`;

/** Null when it went well; else what happened, in words. */
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

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
