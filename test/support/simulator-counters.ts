import { z } from "zod";

const Counters = z.object({
  machines: z.record(z.string(), z.looseObject({ commission: z.number(), deploy: z.number(), release: z.number() })),
  requests: z.record(z.string(), z.number()),
});
export type Counters = z.output<typeof Counters>;

/** Reads the counters of the simulated MAAS: the accepted calls for each machine, and all requests by operation. */
export async function readCounters(control: string): Promise<Counters> {
  return Counters.parse(await (await fetch(`${control}/counters`)).json());
}

export const totalRequests = (counters: Counters): number =>
  Object.values(counters.requests).reduce((sum, count) => sum + count, 0);
