import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findUnitFile, readServiceUnit } from "./unit-file.ts";

export const HW_SYNC_SERVICE = "maas_hardware_sync.service";
const DROP_INS = "etc/systemd/system/maas_hardware_sync.timer.d";
const CREDENTIALS = "etc/maas/maas-machine-creds.yml";
const TIMEOUT_MS = 30_000;

interface Credentials {
  endpoint: string;
  consumerKey: string;
  tokenKey: string;
  tokenSecret: string;
}

/**
 * Reads the machine's credentials for hardware sync from their file. `readCredentials` understands only YAML with two levels of mapping and plain
 * values.
 */
function readCredentials(yaml: string): Credentials {
  const value = (name: string): string => {
    const match = new RegExp(`^\\s+${name}:\\s*["']?([^"'\\s#]+)["']?\\s*$`, "m").exec(yaml);
    if (match?.[1] === undefined) throw new Error(`The credentials file has no ${name} under reporting.maas.`);
    return match[1];
  };
  if (!/^reporting:\s*$/m.test(yaml) || !/^\s+maas:\s*$/m.test(yaml))
    throw new Error("The credentials file has no reporting.maas.");
  return {
    endpoint: value("endpoint"),
    consumerKey: value("consumer_key"),
    tokenKey: value("token_key"),
    tokenSecret: value("token_secret"),
  };
}

/** Returns the interval, in seconds, that a systemd drop-in sets for hardware sync's timer, or null without a drop-in. */
export function ownInterval(root: string): number | null {
  const folder = join(root, DROP_INS);
  if (!existsSync(folder)) return null;
  const seconds = readdirSync(folder)
    .filter((name) => name.endsWith(".conf"))
    .map((name) => /^OnUnitActiveSec=(\d+)s$/m.exec(readFileSync(join(folder, name), "utf8"))?.[1]);
  return Number(seconds.findLast((one) => one !== undefined)) || null;
}

export function machineAuthorization(credentials: Omit<Credentials, "endpoint">): string {
  const fields = {
    oauth_version: "1.0",
    oauth_signature_method: "PLAINTEXT",
    oauth_consumer_key: credentials.consumerKey,
    oauth_token: credentials.tokenKey,
    oauth_signature: encodeURIComponent(`&${encodeURIComponent(credentials.tokenSecret)}`),
    oauth_timestamp: String(Math.floor(Date.now() / 1000)),
    oauth_nonce: randomBytes(16).toString("hex"),
  };
  return `OAuth ${Object.entries(fields)
    .map(([name, one]) => `${name}="${one}"`)
    .join(", ")}`;
}

async function ask(url: URL, init: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
  // The body of a refusal by MAAS may contain the token's secret, so `ask` does not read the body.
  if (!response.ok) throw new Error(`${url.origin}${url.pathname} answered ${response.status}.`);
  return response;
}

/** Fetches MAAS's reporting script from the rack controller, as hardware sync's systemd unit does before it reports. */
async function fetchScript(root: string): Promise<void> {
  const path = findUnitFile(root, HW_SYNC_SERVICE);
  if (path === null) throw new Error(`Unit ${HW_SYNC_SERVICE} not found.`);
  const unit = readServiceUnit(root, HW_SYNC_SERVICE, path);
  for (const command of unit.execStartPre) {
    const url = command.find((word) => /^https?:\/\//.test(word));
    if (url === undefined) continue;
    const script = join(root, "usr/bin/maas-run-scripts");
    await writeFile(script, Buffer.from(await (await ask(new URL(url), {})).arrayBuffer()));
    await chmod(script, 0o755);
  }
}

/** A run of hardware sync uses only the files below the simulated host's root folder. */
export async function syncHardware(root: string): Promise<void> {
  await fetchScript(root);
  const credentials = readCredentials(await readFile(join(root, CREDENTIALS), "utf8"));
  const { origin } = new URL(credentials.endpoint);
  const metadata = new URL("/MAAS/metadata/2012-03-01/", origin);
  await ask(new URL("maas-scripts", metadata), { headers: { Authorization: machineAuthorization(credentials) } });
  const form = new FormData();
  form.set("op", "signal");
  form.set("status", "WORKING");
  form.set("20-maas-03-machine-resources", new Blob(["{}"]), "20-maas-03-machine-resources");
  await ask(metadata, { method: "POST", headers: { Authorization: machineAuthorization(credentials) }, body: form });
}
