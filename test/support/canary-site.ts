/**
 * A hub, a simulated MAAS and simulated hosts in which each secret is a random text that occurs nowhere else. `CanarySite` collects every answer that
 * a client outside the hub receives, so that a test can search the answers for the secrets.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { join, relative } from "node:path";
import { z } from "zod";
import { Problem } from "../../shared/api/errors.ts";
import type { OnboardingDetail } from "../../shared/api/onboardings.ts";
import { unpackUserData } from "../fakes/maas/host/user-data.ts";
import { bmcAddress, SITE_BMC_USER } from "../fakes/maas/state/site.ts";
import { CanaryVault } from "./canary-vault.ts";
import type { TestDatabase } from "./database.ts";
import { type Rig, startRig } from "./rig.ts";
import { SecretSearch } from "./secret-search.ts";
import { demoHosts, ensureSku, type SeededSite, SKU, seedSite } from "./seed-site.ts";
import { SimulatorControl } from "./simulator-control.ts";
import { LONG_WAIT_MS, until } from "./until.ts";
import { newSecret, Receiver } from "./webhook-receiver.ts";

const HOSTS = demoHosts(3);
/** Characters that shells, JSON, URLs, HTML pages and Python escape, each in its own way. */
const ODD = `"'\\ $&<%é`;

const Kept = z.object({
  machines: z.array(
    z.looseObject({
      hostname: z.string(),
      userData: z.string().nullable(),
      token: z.object({ token_key: z.string(), token_secret: z.string(), consumer_key: z.string() }).nullable(),
    }),
  ),
});

export interface Seen {
  readonly place: string;
  readonly text: string;
}

export class CanarySite {
  readonly secrets = new SecretSearch();
  readonly seen: Seen[] = [];
  readonly receiver = new Receiver();
  readonly stateDir: string;
  readonly rig: Rig;
  readonly maas: SimulatorControl;
  readonly vault: CanaryVault;
  readonly keys: {
    readonly apiKey: string;
    readonly wrongKey: string;
    readonly bmc: string;
    readonly override: string;
  };
  readonly #deploy: string;
  readonly #stream = new AbortController();
  webhookId = "";
  site: SeededSite | null = null;

  private constructor(stateDir: string, rig: Rig, vault: CanaryVault, apiKey: string, secrets: SecretSearch) {
    this.stateDir = stateDir;
    this.rig = rig;
    this.vault = vault;
    this.secrets = secrets;
    this.maas = new SimulatorControl(rig.maas.control);
    const [consumer = "", key = ""] = apiKey.split(":");
    this.keys = {
      apiKey,
      wrongKey: `${consumer}:${key}:${secrets.plant("a MAAS token that MAAS refuses")}`,
      bmc: secrets.plant("the site's BMC password", ODD),
      override: secrets.plant("an override's BMC password", ODD),
    };
    this.#deploy = secrets.plant("the deploy password", ODD);
    secrets.add("the admin token", readFileSync(rig.adminTokenFile, "utf8").trim());
  }

  static async start(stateDir: string, database: TestDatabase, hubNodeArgs: readonly string[]): Promise<CanarySite> {
    const secrets = new SecretSearch();
    const apiKey = ["consumer key", "key", "secret"].map((part) => secrets.plant(`the MAAS token's ${part}`)).join(":");
    const databasePassword = new URL(database.url).password;
    if (databasePassword.length >= 16) secrets.add("the database's password", databasePassword);
    const vault = await CanaryVault.start(join(stateDir, "vault-secret-id"));
    secrets.add("the hub's secret ID", vault.giveSecretId());
    const rig = await startRig({
      stateDir,
      machines: HOSTS.length,
      speed: 50,
      databaseUrl: database.url,
      apiKey,
      withoutGpus: HOSTS.map(({ hostname }) => hostname),
      hubNodeArgs,
      hubEnv: { MUSTER_LOG_LEVEL: "debug", ...vault.hubEnv },
    });
    return new CanarySite(stateDir, rig, vault, apiKey, secrets);
  }

  async furnish(): Promise<void> {
    const [, second] = HOSTS;
    const maas = { ...this.rig.maas, bmcPassword: this.keys.bmc, deployPassword: this.#deploy };
    // A simulated host has no GPUs that an agent could clean between two tenants.
    await ensureSku(this.rig.api, { id: SKU, description: "no GPUs", gpu_vendor: "none", gpus_total: 0 });
    this.site = await seedSite(this.rig.api, maas, HOSTS, { max_deploy_retry_attempts: 0 });
    await this.ask("POST", `maas-sites/${this.site.siteId}/power-credential-overrides`, {
      selector_type: "hostname",
      selector_value: second?.hostname,
      user: SITE_BMC_USER,
      pass: this.keys.override,
    });
    const url = await this.receiver.start();
    const secret = newSecret();
    this.secrets.add("the webhook's secret", secret.slice("whsec_".length));
    const { id } = z.looseObject({ id: z.string() }).parse(await this.ask("POST", "webhooks", { url, secret }));
    this.webhookId = id;
    void this.#readStream();
  }

  /** Calls the hub's API and keeps the text of the hub's answer, even if the answer is an error. */
  async ask(method: string, path: string, body?: unknown, token?: string): Promise<unknown> {
    const answer = await fetch(`${this.rig.apiUrl}/api/v1/admin/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token ?? readFileSync(this.rig.adminTokenFile, "utf8").trim()}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    // Two kinds of API answers contain a secret on purpose, so tests do not search these answers for secrets.
    if (!/"(?:bootstrap_command|phone_home_url)":/.test(text)) this.seen.push({ place: `${method} ${path}`, text });
    const json: unknown = text === "" ? null : JSON.parse(text);
    return answer.ok ? json : Problem.parse(json);
  }

  /** Calls the hub's agent listener as a host does. */
  askListener(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<string> {
    const agentUrl = this.hubsOwnUrl();
    return new Promise((resolve, reject) => {
      const request = httpsRequest(
        `${agentUrl}${path}`,
        { method, rejectUnauthorized: false, headers: { "content-type": "application/json", ...headers } },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response.on("end", () => {
            if (response.statusCode !== 200)
              this.seen.push({ place: `${method} of a host, ${response.statusCode}`, text });
            resolve(text);
          });
        },
      );
      request.on("error", reject);
      request.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body));
    });
  }

  hubsOwnUrl = (): string => {
    const started = readFileSync(join(this.stateDir, "hub.log"), "utf8").match(/"agent_url":"([^"]+)"/);
    return started?.[1] ?? "";
  };

  enroll = (token: string, nodeId: string = randomUUID()): Promise<string> =>
    this.askListener("POST", "/internal/v1/enroll", {
      token,
      node_id: nodeId,
      hostname: "canary",
      csr_pem: `-----BEGIN CERTIFICATE REQUEST-----\n${token}\n-----END CERTIFICATE REQUEST-----\n`,
      agent_version: "1",
      protocol_version: 1,
      boot_id: randomUUID(),
      macs: [],
    });

  async onboard(nth: number): Promise<{ id: string; nodeId: string; hostname: string }> {
    const [host, site] = [HOSTS[nth], this.site];
    if (host === undefined || site === null) throw new Error(`there is no host ${nth}`);
    const created = await this.rig.api.onboard({
      site_id: site.siteId,
      profile_id: site.profileId,
      sku_id: site.skuId,
      ...host,
    });
    return { id: created.onboarding_id, nodeId: created.node_id, hostname: host.hostname };
  }

  /**
   * Waits until the onboarding has failed or is complete, as `how` says, and collects the secrets that the onboarding has created. After a failed
   * onboarding, `ends` requests the hub's diagnostics, as an operator does.
   */
  async ends(id: string, how: "failed" | "completed"): Promise<OnboardingDetail> {
    const ended = await until(
      `onboarding ${id} to end`,
      async () => {
        this.collect();
        const now = await this.rig.api.onboarding(id);
        if (!["pending", "running", "compensating"].includes(now.status)) return now;
        throw new Error(
          `${now.hostname} is ${now.status} in ${now.current_stage}: ${now.waiting_for}; ${now.error_message}`,
        );
      },
      { timeoutMs: LONG_WAIT_MS, everyMs: 100 },
    );
    if (!ended.status.startsWith(how))
      throw new Error(`${ended.hostname} is ${ended.status}, not ${how}: ${ended.error_code}: ${ended.error_message}`);
    if (how === "failed") {
      const taken = JSON.stringify(await this.ask("GET", "diagnostics"));
      if (!taken.includes(`"error_code":"${ended.error_code}"`))
        throw new Error(`the diagnostics know no ${ended.error_code}`);
    }
    return ended;
  }

  /** Collects the secrets in Vault and MAAS: the hub's keys, enrollment tokens in the hosts' user-data, and the tokens of machines. */
  collect(): readonly { hostname: string; enrollmentToken: string | null; passwordHash: string | null }[] {
    for (const [name, value] of this.vault.secrets()) this.secrets.add(name, value);
    const { machines } = Kept.parse(JSON.parse(readFileSync(join(this.stateDir, "maas.json"), "utf8")));
    return machines.map(({ hostname, userData, token }) => {
      for (const [part, value] of Object.entries(token ?? {})) this.secrets.add(`${hostname}'s machine ${part}`, value);
      const scripts = unpackUserData(Buffer.from(userData ?? "", "base64")).map((one) => one.content.toString("utf8"));
      const enrollmentToken = /^readonly ENROLLMENT_TOKEN='([\w-]+)'/m.exec(scripts.join("\n"))?.[1] ?? null;
      if (enrollmentToken !== null) this.secrets.add(`${hostname}'s enrollment token`, enrollmentToken);
      const passwordHash = /\$6\$[^']+/.exec(scripts.join("\n"))?.[0] ?? null;
      if (passwordHash !== null) this.secrets.add(`${hostname}'s hash of the deploy password`, passwordHash);
      return { hostname, enrollmentToken, passwordHash };
    });
  }

  /** Keeps the logs of hosts as they are now, because a release or a reimage removes all files of a host. */
  keepLogs(): void {
    for (const hostname of readdirSync(join(this.stateDir, "hosts")))
      for (const { path, text } of unlessWiped(() => filesBelow(join(this.hostFolder(hostname), "var/log")))) {
        const place = `the former ${relative(this.stateDir, path)}`;
        const at = this.seen.findIndex((one) => one.place === place && text.startsWith(one.text));
        this.seen.splice(at < 0 ? this.seen.length : at, at < 0 ? 0 : 1, { place, text });
      }
  }

  setBmcPassword = (nth: number, password: string): Promise<void> =>
    this.maas.setBmcPassword(bmcAddress(nth + 1), password);

  hostFolder = (hostname: string): string => join(this.stateDir, "hosts", hostname);

  async #readStream(): Promise<void> {
    try {
      const answer = await fetch(`${this.rig.apiUrl}/api/v1/admin/events/stream`, {
        headers: { authorization: `Bearer ${readFileSync(this.rig.adminTokenFile, "utf8").trim()}` },
        signal: this.#stream.signal,
      });
      const decoder = new TextDecoder();
      for await (const chunk of answer.body ?? [])
        this.seen.push({ place: "the event stream", text: decoder.decode(chunk as Uint8Array, { stream: true }) });
    } catch (error) {
      if (!this.#stream.signal.aborted) this.seen.push({ place: "the event stream's end", text: String(error) });
    }
  }

  async stop(): Promise<void> {
    this.#stream.abort();
    this.receiver.stop();
    await this.rig.stop();
    await this.vault.close();
  }
}

/** The files of a host; none while the simulator wipes the host, because an earlier look has kept them. */
function unlessWiped<File>(read: () => File[]): File[] {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

export const filesBelow = (folder: string): { path: string; text: string }[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path, text: readFileSync(path, "utf8") }));
