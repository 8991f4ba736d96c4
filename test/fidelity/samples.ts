import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { MaasVersion } from "../fakes/maas/state/model.ts";

/** One recorded exchange (a request and its answer) with a real MAAS region. */
const Exchange = z.object({
  request: z.object({
    method: z.string(),
    url: z.string(),
    body: z.string().nullable(),
    content_type: z.string().nullable(),
  }),
  status: z.number(),
  headers: z.record(z.string(), z.string()),
  body: z.unknown(),
  body_is_json: z.boolean(),
});

export type Exchange = z.infer<typeof Exchange> & { name: string };

export const VERSIONS = ["3.5.12", "3.7.3"] as const satisfies readonly MaasVersion[];

const root = new URL("../..", import.meta.url).pathname;

/** The recorded exchanges with MAAS are third-party data, so the repository does not contain them. */
export const samplesFolder = process.env["MUSTER_MAAS_SAMPLES"] ?? join(root, "../shared/reference/maas-samples");

export function haveSamples(): boolean {
  return VERSIONS.every((version) => existsSync(join(samplesFolder, version, "INDEX.txt")));
}

export function loadExchange(version: MaasVersion, name: string): Exchange | null {
  const path = join(samplesFolder, version, `${name}.json`);
  if (!existsSync(path)) return null;
  const exchange = Exchange.parse(JSON.parse(readFileSync(path, "utf8")));
  // The recorder stored an answer as text if the answer was a bare JSON word, such as null.
  const bareWord =
    !exchange.body_is_json &&
    typeof exchange.body === "string" &&
    exchange.headers["Content-Type"]?.startsWith("application/json") === true;
  return { name, ...exchange, body: bareWord ? JSON.parse(String(exchange.body)) : exchange.body };
}

export function loadExchanges(version: MaasVersion): Exchange[] {
  const names = readFileSync(join(samplesFolder, version, "INDEX.txt"), "utf8")
    .split("\n")
    .map((line) => line.split(" ")[0] ?? "")
    .filter((name) => name !== "");
  return names.map((name) => {
    const exchange = loadExchange(version, name);
    if (exchange === null)
      throw new Error(`The recordings of ${version} list ${name} but have no such file in ${samplesFolder}.`);
    return exchange;
  });
}
