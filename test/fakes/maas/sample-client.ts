import { randomBytes } from "node:crypto";
import type { MaasSimulator } from "./simulator.ts";

export interface Answer {
  status: number;
  text: string;
  headers: Headers;
}

export interface ClientKey {
  consumer: string;
  token: string;
  secret: string;
}

export function authorization(key: ClientKey, more: { timestamp?: number; nonce?: string } = {}): string {
  const fields = {
    oauth_version: "1.0",
    oauth_signature_method: "PLAINTEXT",
    oauth_consumer_key: key.consumer,
    oauth_token: key.token,
    oauth_signature: encodeURIComponent(`&${key.secret}`),
    oauth_timestamp: String(more.timestamp ?? Math.floor(Date.now() / 1000)),
    oauth_nonce: more.nonce ?? randomBytes(16).toString("hex"),
  };
  return `OAuth ${Object.entries(fields)
    .map(([name, value]) => `${name}="${value}"`)
    .join(", ")}`;
}

export function keyOf(apiKey: string): ClientKey {
  const [consumer = "", token = "", secret = ""] = apiKey.split(":");
  return { consumer, token, secret };
}

export class SampleClient {
  readonly #simulator: Pick<MaasSimulator, "url" | "controlUrl" | "apiKey">;

  constructor(simulator: Pick<MaasSimulator, "url" | "controlUrl" | "apiKey">) {
    this.#simulator = simulator;
  }

  async call(method: string, path: string, form?: Readonly<Record<string, string>>): Promise<Answer> {
    const response = await fetch(`${this.#simulator.url}/api/2.0/${path}`, {
      method,
      headers: { Authorization: authorization(keyOf(this.#simulator.apiKey)) },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
    });
    return { status: response.status, text: await response.text(), headers: response.headers };
  }

  async get<Body = Record<string, unknown>>(
    method: string,
    path: string,
    form?: Readonly<Record<string, string>>,
  ): Promise<Body> {
    const answer = await this.call(method, path, form);
    if (answer.status !== 200) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.text}`);
    return JSON.parse(answer.text) as Body;
  }

  async control<Body = unknown>(method: string, path: string, body?: unknown): Promise<Body> {
    const ask = () =>
      fetch(`${this.#simulator.controlUrl}/${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    // After a restart of the simulator, the first request on an old HTTP connection fails. The sample client repeats only a failed GET, because only
    // a GET is safe to repeat.
    const response = await ask().catch((error: unknown) => {
      if (method !== "GET") throw error;
      return ask();
    });
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Body;
  }

  async waitForStatus(systemId: string, status: number): Promise<Record<string, unknown>> {
    return this.waitFor(`status ${status} of ${systemId}`, async () => {
      const machine = await this.get("GET", `machines/${systemId}/`);
      return machine["status"] === status ? machine : null;
    });
  }

  /** The long deadline of `waitFor` ends only a wait that can never succeed. */
  async waitFor<Value>(what: string, ask: () => Promise<Value | null> | Value | null): Promise<Value> {
    const deadline = Date.now() + 60_000;
    while (Date.now() < deadline) {
      const value = await ask();
      if (value !== null) return value;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`Waited 60 s in vain for ${what}.`);
  }
}
