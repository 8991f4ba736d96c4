import { randomBytes } from "node:crypto";
import type { MaasSimulator } from "../fakes/maas/simulator.ts";
import type { Exchange } from "./samples.ts";
import { asRecorded, comparableError, decisionDifferences, shapeDifferences } from "./shape.ts";

interface Key {
  consumer: string;
  token: string;
  secret: string;
}

export function keyOf(apiKey: string): Key {
  const [consumer = "", token = "", secret = ""] = apiKey.split(":");
  return { consumer, token, secret };
}

function authorization(key: Key): string {
  const fields = {
    oauth_version: "1.0",
    oauth_signature_method: "PLAINTEXT",
    oauth_consumer_key: key.consumer,
    oauth_token: key.token,
    oauth_signature: encodeURIComponent(`&${key.secret}`),
    oauth_timestamp: String(Math.floor(Date.now() / 1000)),
    oauth_nonce: randomBytes(16).toString("hex"),
  };
  return `OAuth ${Object.entries(fields)
    .map(([name, value]) => `${name}="${value}"`)
    .join(", ")}`;
}

export class Translation {
  readonly #systemIds = new Map<string, string>();
  readonly #numbers = new Map<string, string>();

  text(recorded: string): string {
    let text = recorded;
    for (const [theirs, ours] of this.#systemIds) text = text.replaceAll(theirs, ours);
    return text;
  }

  url(recorded: string): string {
    return this.text(recorded).replace(/\/(interfaces|blockdevices)\/(\d+)/g, (whole, kind: string, id: string) => {
      const ours = this.#numbers.get(`${kind}/${id}`);
      return ours === undefined ? whole : `/${kind}/${ours}`;
    });
  }

  body(exchange: Exchange): string | null {
    const { body, url } = exchange.request;
    if (body === null) return null;
    let text = this.text(body).replace(
      /^vlan=(\d+)/,
      (_, id: string) => `vlan=${this.#numbers.get(`vlans/${id}`) ?? id}`,
    );
    if (url.includes("op=unlink_subnet"))
      text = text.replace(/^id=(\d+)/, (_, id: string) => `id=${this.#numbers.get(`links/${id}`) ?? id}`);
    return text.replace(
      /root_device=(\d+)/,
      (_, id: string) => `root_device=${this.#numbers.get(`blockdevices/${id}`) ?? id}`,
    );
  }

  /** Returns the text of a recorded error, with the simulator's ids in place of the recorded ids of links to subnets. */
  error(exchange: Exchange, recorded: string): string {
    const text = this.text(recorded);
    if (!exchange.request.url.includes("op=unlink_subnet")) return text;
    return text.replace(/one of: '(\d+)'/, (_, id: string) => `one of: '${this.#numbers.get(`links/${id}`) ?? id}'`);
  }

  /** Compares a recorded answer with the simulated answer, and stores which simulated id belongs to which recorded id. */
  learn(recorded: unknown, simulated: unknown, inLinks = false): void {
    if (Array.isArray(recorded) && Array.isArray(simulated)) {
      for (const [index, one] of recorded.entries()) this.learn(one, simulated[index], inLinks);
      return;
    }
    if (typeof recorded !== "object" || recorded === null || typeof simulated !== "object" || simulated === null)
      return;
    const [theirs, ours] = [recorded as Record<string, unknown>, simulated as Record<string, unknown>];
    if (typeof theirs["system_id"] === "string" && typeof ours["system_id"] === "string")
      this.#systemIds.set(theirs["system_id"], ours["system_id"]);
    const kind = inLinks
      ? "links"
      : /\/(interfaces|blockdevices|vlans)\/\d+\/$/.exec(String(theirs["resource_uri"]))?.[1];
    if (kind !== undefined && ours["id"] !== undefined)
      this.#numbers.set(`${kind}/${String(theirs["id"])}`, String(ours["id"]));
    for (const [name, value] of Object.entries(theirs)) this.learn(value, ours[name], name === "links");
  }

  /** Stores the simulator's id of a recorded machine before any answer has shown the machine. */
  know(theirs: string, ours: string): void {
    if (!this.#systemIds.has(theirs)) this.#systemIds.set(theirs, ours);
  }
}

export interface Callers {
  admin: Key;
  other: Key;
  /** The wrong MAAS token in the refused requests of the recording. */
  wrongToken: string;
}

function callerOf(name: string, callers: Callers): Key | null {
  if (name.startsWith("no-auth-") || name === "version") return null;
  if (name.startsWith("nonadmin-")) return callers.other;
  if (name === "bad-token") return { ...callers.admin, token: callers.wrongToken };
  if (name === "bad-consumer") return { ...callers.admin, consumer: "nobody" };
  if (name === "bad-secret") return { ...callers.admin, secret: "wrong" };
  return callers.admin;
}

export async function replay(
  simulator: MaasSimulator,
  exchange: Exchange,
  callers: Callers,
  translation: Translation,
): Promise<string[]> {
  const { request } = exchange;
  const caller = callerOf(exchange.name, callers);
  const body = translation.body(exchange);
  const response = await fetch(new URL(translation.url(request.url), simulator.url), {
    method: request.method,
    headers: {
      ...(caller === null ? {} : { Authorization: authorization(caller) }),
      ...(request.content_type === null ? {} : { "Content-Type": request.content_type }),
    },
    ...(body === null ? {} : { body }),
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const differences: string[] = [];
  if (response.status !== exchange.status)
    differences.push(
      `status: recorded ${exchange.status}, simulated ${response.status} ${bytes.toString("utf8").slice(0, 120)}`,
    );
  const type = response.headers.get("content-type");
  if (type !== exchange.headers["Content-Type"])
    differences.push(`content type: recorded ${exchange.headers["Content-Type"]}, simulated ${type}`);
  for (const name of ["WWW-Authenticate", "Allow"]) {
    if (exchange.headers[name] !== undefined && response.headers.get(name) !== exchange.headers[name])
      differences.push(`${name}: recorded ${exchange.headers[name]}, simulated ${response.headers.get(name)}`);
  }
  return [...differences, ...bodyDifferences(exchange, bytes, type ?? "", translation)];
}

function bodyDifferences(exchange: Exchange, bytes: Buffer, type: string, translation: Translation): string[] {
  const text = bytes.toString("utf8");
  if (exchange.status >= 400) {
    const recorded = typeof exchange.body === "string" ? exchange.body : JSON.stringify(exchange.body);
    const simulated = type.startsWith("application/json") && text !== "" ? JSON.stringify(JSON.parse(text)) : text;
    const [theirs, ours] = [comparableError(translation.error(exchange, recorded)), comparableError(simulated)];
    return theirs === ours ? [] : [`error text: recorded ${theirs}, simulated ${ours}`];
  }
  if (!type.startsWith("application/json"))
    return text === String(exchange.body ?? "")
      ? []
      : [`text: recorded ${JSON.stringify(exchange.body)}, simulated ${JSON.stringify(text)}`];
  const simulated: unknown = JSON.parse(text);
  translation.learn(exchange.body, simulated);
  const recorded: unknown = JSON.parse(translation.text(JSON.stringify(exchange.body)));
  const compared = asRecorded(recorded, simulated);
  return [...shapeDifferences(recorded, compared), ...decisionDifferences(recorded, compared)];
}
