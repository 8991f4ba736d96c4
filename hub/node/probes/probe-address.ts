import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { isForbiddenToProbes } from "../../outbound/forbidden-address.ts";
import type { ProbeOutcome } from "./probe-verdict.ts";

/** How the hub finds the address of a host, and to which addresses it may connect. */
export interface ProbeNetwork {
  /** Returns the addresses of a name. It throws if the name has none, or if nobody answers in time. */
  readonly resolve: (name: string, withinMs: number) => Promise<readonly string[]>;
  readonly isForbidden: (address: string, port: number) => boolean;
}

/**
 * The network of a hub. The names are asked of DNS by a resolver of their own, because the system's resolver has few threads, which slow answers about
 * hosts would take from the hub's other work.
 */
export const HUB_NETWORK: ProbeNetwork = {
  resolve: async (name, withinMs) => {
    const resolver = new Resolver({ tries: 1 });
    const patience = setTimeout(() => resolver.cancel(), withinMs);
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    clearTimeout(patience);
    const addresses = found.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    if (addresses.length === 0) throw new Error(`nothing resolves ${name}`);
    return addresses;
  },
  isForbidden: isForbiddenToProbes,
};

export type Addressed = { readonly kind: "address"; readonly address: string } | ProbeOutcome;

const NO_ADDRESS =
  "The node has no address, so the hub cannot probe its host. Let MAAS or the node's agent report one, or the external system in the facts of its completion (host).";

/**
 * Returns the address to which a probe connects. The hub checks the addresses behind a name at each probe, and connects to a checked address and never
 * to the name, so that a changed answer of DNS leads the hub nowhere else. One forbidden address among several is enough to refuse all.
 */
export async function addressOf(
  { host, port }: { readonly host: string | null; readonly port: number },
  { resolve, isForbidden }: ProbeNetwork,
  withinMs: number,
): Promise<Addressed> {
  if (host === null) return { kind: "unknown", reason: "NoAddress", saw: NO_ADDRESS };
  const addresses = isIP(host) === 0 ? await resolve(host, withinMs).catch(() => []) : [host];
  const [address] = addresses;
  if (address === undefined)
    return {
      kind: "failed",
      reason: "NameNotResolved",
      saw: `The hub found no address for the name ${host} within ${withinMs / 1000} s.`,
    };
  const forbidden = addresses.find((one) => isForbidden(one, port));
  if (forbidden === undefined) return { kind: "address", address };
  return {
    kind: "unknown",
    reason: "AddressRefused",
    saw: `The hub does not probe ${forbidden}, which is a loopback, link-local, metadata or multicast address, or one of the hub itself. Correct the node's address.`,
  };
}
