import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { isForbiddenToProbes } from "../../outbound/forbidden-address.ts";
import type { ProbeOutcome } from "./probe-verdict.ts";

/** How the hub finds the address of a host, and to which addresses it may connect. */
export interface ProbeNetwork {
  /**
   * Returns the addresses of a name, and none if DNS says that it has none. `resolve` throws if DNS fails, or does not answer before the signal is
   * aborted.
   */
  readonly resolve: (name: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** True if no probe may connect to `address`, which is the host's own address or one to which the host's name resolves. */
  readonly isForbidden: (address: string, host: string) => boolean;
}

/** The code of an error of the operating system, DNS, TLS or HTTP. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "unknown";

/**
 * The error codes by which DNS says that a name does not exist or has no address. Every other error code of a DNS query is a fault of DNS, which says
 * nothing about the host.
 */
const NO_SUCH = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);

/**
 * The network of a hub. The hub asks DNS about hosts' names by a resolver of its own, because the system's resolver has few threads, and slow answers
 * would take these threads from the hub's other work.
 */
export const HUB_NETWORK: ProbeNetwork = {
  resolve: async (name, signal) => {
    signal.throwIfAborted();
    const resolver = new Resolver({ tries: 1 });
    const stop = () => resolver.cancel();
    signal.addEventListener("abort", stop, { once: true });
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    signal.removeEventListener("abort", stop);
    const addresses = found.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    const fault = found.find((one) => one.status === "rejected" && !NO_SUCH.has(codeOf(one.reason)));
    if (addresses.length === 0 && fault?.status === "rejected") throw fault.reason;
    return addresses;
  },
  isForbidden: isForbiddenToProbes,
};

export type Addressed = { readonly kind: "address"; readonly address: string } | ProbeOutcome;

const NO_ADDRESS =
  "The node has no address, so the hub cannot probe its host. Let MAAS or the node's agent report one, or the external system in the facts of its completion (host).";

/** The part of a probe's time that DNS may take, so that a host with one known address is still probed if DNS answers late about IPv4 or IPv6. */
const FOR_DNS = 0.5;

/**
 * Returns the address to which a probe connects. The hub checks the addresses behind a name at each probe, and connects to a checked address and
 * never to the name, so that a changed answer of DNS leads the hub nowhere else. If one of several addresses of a name is forbidden, the hub does not
 * probe the host at all.
 */
export async function addressOf(
  host: string | null,
  { resolve, isForbidden }: ProbeNetwork,
  withinMs: number,
  closing: AbortSignal,
): Promise<Addressed> {
  if (host === null) return { kind: "unknown", reason: "NoAddress", saw: NO_ADDRESS };
  let addresses: readonly string[] = [host];
  if (isIP(host) === 0)
    try {
      addresses = await resolve(host, AbortSignal.any([AbortSignal.timeout(withinMs * FOR_DNS), closing]));
    } catch (error) {
      return { kind: "not_tried", saw: `DNS did not answer about the name ${host} (${codeOf(error)}).` };
    }
  const [address] = addresses;
  if (address === undefined)
    return { kind: "failed", reason: "NameNotResolved", saw: `DNS says that the name ${host} has no address.` };
  const forbidden = addresses.find((one) => isForbidden(one, host));
  if (forbidden === undefined) return { kind: "address", address };
  return {
    kind: "unknown",
    reason: "AddressRefused",
    saw: `The hub does not probe ${forbidden}, which is a loopback, link-local, metadata or multicast address, or one of the hub's own machine. Correct the node's address.`,
  };
}
