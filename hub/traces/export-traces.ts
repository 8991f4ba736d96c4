import { readFile } from "node:fs/promises";
import type { HrTime } from "@opentelemetry/api";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { Log } from "../../shared/log.ts";
import type { Change } from "../db/committed.ts";
import { currentStage } from "./current-stage.ts";
import { parseHeaders } from "./header-lines.ts";
import { type OutsideCall, type SpanValues, spanOfCall, spansOf } from "./spans.ts";

export interface TraceSettings {
  /** The URL of a collector that takes traces by OTLP over HTTP, with its path. */
  readonly url: string;
  /**
   * The file with the headers of each request to the collector, or null. The hub reads the file with the request headers for the trace collector anew
   * before each request.
   */
  readonly headersFile: string | null;
}

/** Where a hub sends its traces. Without a collector, the methods of `Traces` do nothing. */
export interface Traces {
  committed(changes: readonly Change[]): void;
  /** Records a call to another system, if the running code is a part of a workflow's stage. */
  called(call: OutsideCall): void;
  /** Sends the spans that wait, for five seconds at most. */
  close(): Promise<void>;
}

export const NO_TRACES: Traces = { committed: () => undefined, called: () => undefined, close: async () => undefined };

/**
 * The longest queue of spans that wait for the collector. While the queue of spans is full, new spans are lost, so that the hub's memory use stays
 * bounded.
 */
const MOST_WAITING = 4_096;
/** How long the hub collects spans before it sends them. */
const SEND_EVERY_MS = 2_000;
const REQUEST_MS = 10_000;
const CLOSE_MS = 5_000;
/** The shortest time between two log messages that the trace collector does not take spans. */
const WARN_EVERY_MS = 60_000;

/**
 * Sends traces by OpenTelemetry's own exporter. Only `exportTraces` loads the modules of OpenTelemetry, so a hub without a trace collector does not
 * load them. No code of the hub waits for the collector.
 */
export async function exportTraces(
  { url, headersFile }: TraceSettings,
  about: { readonly version: string; readonly hubId: string; readonly log: Log },
): Promise<Traces> {
  const [{ OTLPTraceExporter }, { BatchSpanProcessor }, { resourceFromAttributes }] = await Promise.all([
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/resources"),
  ]);
  const resource = resourceFromAttributes({
    "service.name": "muster-hub",
    "service.version": about.version,
    "service.instance.id": about.hubId,
  });
  const headers = async (): Promise<Record<string, string>> =>
    headersFile === null ? {} : parseHeaders(await readFile(headersFile, "utf8"));
  const otlp = new OTLPTraceExporter({ url, headers, timeoutMillis: REQUEST_MS });
  const processor = new BatchSpanProcessor({
    exporter: tellingLosses(otlp, about.log),
    maxQueueSize: MOST_WAITING,
    scheduledDelayMillis: SEND_EVERY_MS,
    exportTimeoutMillis: REQUEST_MS,
  });
  const send = (span: SpanValues): void => processor.onEnd(readable(span, resource, about.version));
  return {
    committed: (changes) => {
      for (const change of changes) for (const span of spansOf(change)) send(span);
    },
    called: (call) => {
      const visit = currentStage();
      if (visit !== null) send(spanOfCall(visit, call));
    },
    close: async () => {
      const late = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
      await Promise.race([processor.shutdown().catch(() => undefined), late]);
    },
  };
}

/** Passes spans on to the exporter, and says in the hub's log when the collector did not take them. */
function tellingLosses(exporter: SpanExporter, log: Log): SpanExporter {
  let [lost, warnAfter] = [0, 0];
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== 0) {
          lost += spans.length;
          if (performance.now() >= warnAfter) {
            warnAfter = performance.now() + WARN_EVERY_MS;
            log.warn("the collector of traces did not take spans; check MUSTER_TRACES_URL", {
              lost_spans: lost,
              error: result.error?.message,
            });
          }
        }
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    ...(exporter.forceFlush === undefined ? {} : { forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve() }),
  };
}

const timeOf = (ms: number): HrTime => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];

function readable(span: SpanValues, resource: ReadableSpan["resource"], version: string): ReadableSpan {
  const { traceId, spanId, parentId, name, kind, startMs, endMs, error, attributes } = span;
  return {
    name,
    // OpenTelemetry's numeric codes: span kind internal is 0 and client is 2; span status unset is 0 and error is 2.
    kind: kind === "client" ? 2 : 0,
    spanContext: () => ({ traceId, spanId, traceFlags: SAMPLED }),
    ...(parentId === null ? {} : { parentSpanContext: { traceId, spanId: parentId, traceFlags: SAMPLED } }),
    startTime: timeOf(startMs),
    endTime: timeOf(endMs),
    duration: timeOf(endMs - startMs),
    status: error === null ? { code: 0 } : { code: 2, message: error },
    attributes: { ...attributes },
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: "muster", version },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
const SAMPLED = 1;
