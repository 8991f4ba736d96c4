import { z } from "zod";
import { isSafeForSecrets } from "../http/loopback.ts";
import type { TraceSettings } from "../traces/export-traces.ts";

export const traceEnv = {
  /** The URL of a collector that takes traces by OTLP over HTTP, with its path. Without MUSTER_TRACES_URL the hub makes no traces. */
  MUSTER_TRACES_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** A file with a line `name: value` for each header of a request to the collector, for example with its token. */
  MUSTER_TRACES_HEADERS_FILE: z.string().min(1).optional(),
};

interface TraceEnv {
  readonly MUSTER_TRACES_URL?: string | undefined;
  readonly MUSTER_TRACES_HEADERS_FILE?: string | undefined;
}

/** Returns the settings of traces, null without a collector, or what is wrong with the settings. */
export function traceSettings(e: TraceEnv): TraceSettings | null | { readonly fault: string } {
  const { MUSTER_TRACES_URL: text, MUSTER_TRACES_HEADERS_FILE: headersFile } = e;
  if (text === undefined)
    return headersFile === undefined ? null : { fault: "MUSTER_TRACES_HEADERS_FILE needs MUSTER_TRACES_URL." };
  const url = new URL(text);
  if (url.username !== "" || url.password !== "")
    return { fault: "MUSTER_TRACES_URL must not hold a login. Put the header into MUSTER_TRACES_HEADERS_FILE." };
  if (headersFile !== undefined && !isSafeForSecrets(text))
    return {
      fault:
        "MUSTER_TRACES_URL must begin with https:// while MUSTER_TRACES_HEADERS_FILE holds a token for it; http:// is allowed on loopback only.",
    };
  return { url: text, headersFile: headersFile ?? null };
}
