import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { z } from "zod";

const Value = z
  .union([z.object({ stringValue: z.string() }), z.object({ intValue: z.coerce.number() })])
  .transform((value) => ("stringValue" in value ? value.stringValue : value.intValue));
const Attributes = z
  .array(z.object({ key: z.string(), value: Value }))
  .transform((all) => Object.fromEntries(all.map(({ key, value }) => [key, value])));
const ReceivedSpan = z.looseObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int(),
  startTimeUnixNano: z.coerce.bigint(),
  endTimeUnixNano: z.coerce.bigint(),
  status: z.looseObject({ code: z.int().default(0), message: z.string().optional() }),
  attributes: Attributes,
});
export type ReceivedSpan = z.output<typeof ReceivedSpan>;
const Request = z.object({
  resourceSpans: z.array(
    z.looseObject({
      resource: z.looseObject({ attributes: Attributes }),
      scopeSpans: z.array(z.looseObject({ spans: z.array(ReceivedSpan) })),
    }),
  ),
});

/** A collector of traces that takes OTLP as JSON over HTTP, from clients with its token alone. */
export class TraceCollector {
  readonly spans: ReceivedSpan[] = [];
  readonly resources: Record<string, unknown>[] = [];
  /** The number of requests that the collector has refused. */
  refused = 0;
  /** While `away` is true, the collector answers that it is unavailable. */
  away = false;
  readonly #server: Server;
  readonly #token: string;

  private constructor(token: string) {
    this.#token = token;
    this.#server = createServer(async (request, response) => {
      const body = await json(request);
      const wrong = request.headers.authorization !== `Bearer ${this.#token}` || request.url !== "/v1/traces";
      if (wrong || this.away) {
        this.refused += 1;
        return void response.writeHead(wrong ? 401 : 400).end();
      }
      for (const { resource, scopeSpans } of Request.parse(body).resourceSpans) {
        this.resources.push(resource.attributes);
        this.spans.push(...scopeSpans.flatMap(({ spans }) => spans));
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  }

  static async start(token: string): Promise<TraceCollector> {
    const collector = new TraceCollector(token);
    await new Promise<void>((resolve) => collector.#server.listen(0, "127.0.0.1", resolve));
    return collector;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  ofTrace(workflowId: string): ReceivedSpan[] {
    return this.spans.filter(({ traceId }) => traceId === workflowId.replaceAll("-", ""));
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
