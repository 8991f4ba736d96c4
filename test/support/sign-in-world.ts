import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { CLI_CLIENT, PAGE_CLIENT, RESOURCE, TestProvider } from "../fakes/oidc/provider.ts";
import type { Child } from "./child.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { freeHubPorts, startHubProcess } from "./hub-process.ts";
import { newHubFolder, removeHubState } from "./hub-state.ts";
import { SmallBrowser, type Visited } from "./small-browser.ts";

const MAIN = new URL("../../hub/cli/main.ts", import.meta.url).pathname;

export interface Rule {
  readonly claim: string | readonly string[];
  readonly value: string;
  readonly role: string;
  readonly sites?: readonly string[];
  readonly tenant?: string;
}
export const RULES: readonly Rule[] = [
  { claim: "groups", value: "gpu-admins", role: "admin" },
  { claim: "groups", value: "readers", role: "viewer" },
  { claim: "groups", value: "machines", role: "provisioner" },
];

/** A provider and two hubs in processes of their own, on one database. Browsers know the address of the first hub only. */
export class SignInWorld {
  readonly provider: TestProvider;
  readonly database: TestDatabase;
  readonly hubs: readonly { readonly url: string; readonly process: Child }[];
  readonly folder: string;

  private constructor(
    provider: TestProvider,
    database: TestDatabase,
    hubs: readonly { readonly url: string; readonly process: Child }[],
    folder: string,
  ) {
    this.provider = provider;
    this.database = database;
    this.hubs = hubs;
    this.folder = folder;
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<SignInWorld> {
    const folder = newHubFolder("muster-sign-in-");
    const [database, ports, more] = await Promise.all([createTestDatabase(), freeHubPorts(), freeHubPorts()]);
    const publicUrl = `http://127.0.0.1:${ports.http}`;
    const provider = await TestProvider.start([`${publicUrl}/sign-in/callback`]);
    writeFileSync(join(folder, "client-secret"), `${PAGE_CLIENT.secret}\n`, { mode: 0o600 });
    writeFileSync(join(folder, "roles.json"), JSON.stringify(RULES));
    const settings = {
      MUSTER_PUBLIC_URL: publicUrl,
      MUSTER_OIDC_ISSUER: provider.issuer,
      MUSTER_OIDC_CLIENT_ID: PAGE_CLIENT.id,
      MUSTER_OIDC_CLIENT_SECRET_FILE: join(folder, "client-secret"),
      MUSTER_OIDC_CLI_CLIENT_ID: CLI_CLIENT,
      MUSTER_OIDC_SCOPES: "openid profile groups",
      MUSTER_OIDC_CLI_SCOPES: "openid profile groups offline_access",
      MUSTER_OIDC_AUDIENCE: RESOURCE,
      MUSTER_OIDC_RESOURCE: RESOURCE,
      MUSTER_OIDC_ROLES_FILE: join(folder, "roles.json"),
      ...env,
    };
    const start = (own: typeof ports, name: string) => ({
      url: `http://127.0.0.1:${own.http}`,
      process: startHubProcess({
        databaseUrl: database.url,
        stateDir: join(folder, "state"),
        ports: own,
        env: settings,
        logFile: join(folder, `${name}.log`),
      }),
    });
    const first = start(ports, "one");
    await first.process.ready;
    const second = start(more, "two");
    await second.process.ready;
    return new SignInWorld(provider, database, [first, second], folder);
  }

  get url(): string {
    return this.hubs[0]?.url ?? "";
  }
  get otherUrl(): string {
    return this.hubs[1]?.url ?? "";
  }
  get adminToken(): string {
    return readFileSync(join(this.folder, "state", "admin-token"), "utf8").trim();
  }

  /** Replaces the rules of roles as an operator should, by a rename. */
  setRules(rules: readonly Rule[] | string): void {
    const file = join(this.folder, "roles.json");
    writeFileSync(`${file}.new`, typeof rules === "string" ? rules : JSON.stringify(rules));
    renameSync(`${file}.new`, file);
  }

  /** The whole way of a person to the provider and back. */
  async signIn(account: string, browser = new SmallBrowser()): Promise<{ browser: SmallBrowser; last: Visited }> {
    this.provider.signsIn = account;
    return { browser, last: await browser.visit(`${this.url}/sign-in`) };
  }

  /** The way to the provider, up to the address at which the provider sends the browser back to the hub. */
  async toCallback(
    account: string,
    browser = new SmallBrowser(),
  ): Promise<{ browser: SmallBrowser; callback: string }> {
    this.provider.signsIn = account;
    const { url } = await browser.visit(`${this.url}/sign-in`, {}, (at) =>
      at.startsWith(`${this.url}/sign-in/callback`),
    );
    return { browser, callback: url };
  }

  async get(browser: SmallBrowser, path: string, url = this.url): Promise<{ status: number; body: Body }> {
    // A browser sends the cookies of an address to every port of it.
    const cookie = [...browser.cookies(this.url)].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(`${url}${path}`, { headers: { cookie } });
    return { status: answer.status, body: (await answer.json()) as Body };
  }

  /** Sends a change as the hub's own page does. The argument `headers` overrides the headers of the page. */
  post(browser: SmallBrowser, path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    return browser.send(`${this.url}${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "sec-fetch-site": "same-origin",
        origin: this.url,
        ...headers,
      },
      body: JSON.stringify(body),
    });
  }

  /** Runs `muster` as a user with an own home, who has no token of the hub's machine. */
  muster(args: readonly string[], { home = join(this.folder, "home"), input = "" } = {}) {
    return execa(process.execPath, [MAIN, ...args], {
      cwd: this.folder,
      extendEnv: false,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: home,
        MUSTER_URL: this.url,
        MUSTER_STATE_DIR: join(this.folder, "none"),
      },
      reject: false,
      input,
    });
  }

  async close(): Promise<void> {
    for (const { process } of this.hubs) await process.stop();
    await this.provider.close();
    await this.database.drop();
    removeHubState(this.folder);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies that each route's own schema describes
type Body = any;
