import { type Findings, fault, fine, notObserved } from "./judged.ts";

/** A network interface of a hardware device, as the files below `/sys/class/net` describe it. */
export interface Nic {
  readonly name: string;
  /** True if somebody has switched the interface on (IFF_UP). */
  readonly isUp: boolean;
  readonly carrier: boolean;
  readonly speedMbps: number | null;
}

/** The fastest speed of each interface since the agent's start, by which the agent sees a link that came back slower. */
export type BestSpeeds = Readonly<Record<string, number>>;

export function bestSpeeds(before: BestSpeeds, nics: readonly Nic[]): BestSpeeds {
  const seen = nics.flatMap(({ name, speedMbps }) =>
    speedMbps === null ? [] : [[name, Math.max(before[name] ?? 0, speedMbps)] as const],
  );
  return { ...before, ...Object.fromEntries(seen) };
}

/**
 * An interface that nobody has switched on does not need a link. The agent does not check whether the host has as many links as its SKU requires,
 * because only the hub knows the SKU.
 */
export function judgeNics(nics: readonly Nic[], best: BestSpeeds): Findings {
  if (nics.length === 0) return { "hardware.nics": notObserved("The host shows no network interface with hardware.") };
  const faults = nics
    .filter(({ isUp }) => isUp)
    .flatMap(({ name, carrier, speedMbps }) => {
      if (!carrier) return [`${name} is up and has no link`];
      const was = best[name] ?? 0;
      return speedMbps !== null && speedMbps < was ? [`${name} has ${speedMbps} Mbit/s and had ${was} Mbit/s`] : [];
    });
  const links = nics.filter(({ isUp, carrier }) => isUp && carrier).length;
  return {
    "hardware.nics": faults.length > 0 ? fault("LinkLost", faults) : fine(`${links} interfaces have a link`),
  };
}
