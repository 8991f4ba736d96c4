import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Problem } from "../../shared/api/errors.ts";
import { NodeDetail, NodeSummary } from "../../shared/api/nodes.ts";
import { BatchCreated, Onboarding, OnboardingCreated, OnboardingDetail, page } from "../../shared/api/onboardings.ts";
import { Profile } from "../../shared/api/profiles.ts";
import { Site, Sku } from "../../shared/api/sites.ts";

/** The error for a request that the hub has refused, with the problem from the hub's answer. */
export class HubProblem extends Error {
  readonly problem: Problem;
  constructor(method: string, path: string, problem: Problem) {
    super(
      `${method} ${path}: ${problem.status} ${problem.code}: ${problem.detail} ${JSON.stringify(problem.errors ?? [])}`,
    );
    this.problem = problem;
  }
}

/** How long a client sends a read again whose connection a killed hub has closed. */
const PATIENCE_MS = 30_000;

/**
 * True if the connection was closed before the answer: the hub was killed, or it closed an idle connection at the moment at which the client used the
 * connection. A read may then be sent again. A write may have taken effect, so only its caller can judge what to do.
 */
function wasClosed(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
  return error instanceof TypeError && (code === "UND_ERR_SOCKET" || code === "ECONNRESET");
}

/** A client of the hub's public API, which checks each answer against the schema that the hub documents. */
export class HubApi {
  readonly url: string;
  readonly #token: string;
  constructor(url: string, token: string) {
    this.url = url;
    this.#token = token;
  }

  async call<T>(
    schema: z.ZodType<T>,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<T> {
    const answer = await this.#send(path, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const json: unknown = text === "" ? null : JSON.parse(text);
    if (!answer.ok) throw new HubProblem(method, path, Problem.parse(json));
    return schema.parse(json);
  }

  async #send(path: string, request: RequestInit): Promise<Response> {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await fetch(new URL(path, this.url), { ...request, signal: AbortSignal.timeout(30_000) });
      } catch (error) {
        if (request.method !== "GET" || !wasClosed(error) || Date.now() > deadline) throw error;
        await sleep(100);
      }
    }
  }

  /** Reads the object at a path of the API, and sends a PATCH that names the version of the object. */
  async patch<T>(schema: z.ZodType<T>, path: string, body: unknown): Promise<T> {
    const headers = { authorization: `Bearer ${this.#token}` };
    const seen = await this.#send(path, { method: "GET", headers });
    return this.call(schema, "PATCH", path, body, {
      "if-match": seen.headers.get("etag") ?? "",
    });
  }

  async all<T>(item: z.ZodType<T>, path: string): Promise<T[]> {
    // The lists of nodes and of operations also have a total.
    const listed = page(item).extend({ total: z.int().nullable().optional() });
    const items: T[] = [];
    const join = path.includes("?") ? "&" : "?";
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? path : `${path}${join}cursor=${encodeURIComponent(cursor)}`;
      const answer: { items: T[]; next_cursor: string | null } = await this.call(listed, "GET", query);
      items.push(...answer.items);
      cursor = answer.next_cursor;
    } while (cursor !== null);
    return items;
  }

  sites = () => this.all(Site, "/api/v1/admin/maas-sites");
  profiles = (siteId: string) => this.all(Profile, `/api/v1/admin/maas-sites/${siteId}/profiles`);
  skus = () => this.all(Sku, "/api/v1/admin/skus");
  nodes = () => this.all(NodeSummary, "/api/v1/admin/nodes?include_deleted=true");
  node = (id: string) => this.call(NodeDetail, "GET", `/api/v1/admin/nodes/${id}`);
  onboardings = () => this.all(Onboarding, "/api/v1/admin/onboardings");
  onboarding = (id: string) => this.call(OnboardingDetail, "GET", `/api/v1/admin/onboardings/${id}`);
  onboard = (body: unknown) => this.call(OnboardingCreated, "POST", "/api/v1/admin/onboardings", body);
  onboardBatch = (body: unknown) => this.call(BatchCreated, "POST", "/api/v1/admin/onboardings/batch", body);
}
