import { BlockList, isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { hostOf, plainAddress, portOf } from "./addresses.ts";

/** A host, by address or name, and a port at which this hub itself answers. */
interface Place {
  readonly host: string;
  readonly port: number;
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");
const ANY = new Set(["0.0.0.0", "::"]);

const isMachines = (address: string): boolean =>
  LOOPBACK.check(address, isIP(address) === 4 ? "ipv4" : "ipv6") ||
  Object.values(networkInterfaces()).some((all) => all?.some((one) => plainAddress(one.address) === address));

const isNameOfMachine = (name: string): boolean =>
  name === "localhost" || name.endsWith(".localhost") || name === hostname().toLowerCase();

/**
 * The addresses at which the hub's process listens, which no webhook and no MAAS region may use. If a webhook had one of the hub's own addresses, the
 * hub would send itself every event in a loop. If a MAAS region had one of the hub's own addresses, the hub would call its own API with a MAAS token.
 */
class OwnPlaces {
  readonly #places = new Set<Place>();

  /**
   * Adds an address at which the hub's process listens, or a name by which other programs reach the hub. `add` returns a function that removes the
   * added address or name.
   */
  add(host: string, port: number): () => void {
    const place = { host: plainAddress(host), port };
    this.#places.add(place);
    return () => void this.#places.delete(place);
  }

  /** True if a connection to the given address would reach the hub itself. */
  isOwn(address: string, port: number): boolean {
    const to = plainAddress(address);
    if (isIP(to) === 0) return false;
    return [...this.#places].some(
      (place) => place.port === port && (place.host === to || (ANY.has(place.host) && isMachines(to))),
    );
  }

  /** True if the address or name belongs to the hub's machine, or if other programs reach the hub by it, at whatever port. */
  isHere(host: string): boolean {
    const to = plainAddress(host);
    return (isIP(to) === 0 ? isNameOfMachine(to) : isMachines(to)) || [...this.#places].some((one) => one.host === to);
  }

  /** True if the URL's host is the hub itself, by an address or by a name that the hub recognizes without a DNS query. */
  isOwnUrl(url: URL): boolean {
    const port = portOf(url);
    const host = hostOf(url).toLowerCase();
    if (isIP(host) !== 0) return this.isOwn(host, port);
    if (isNameOfMachine(host) && ["127.0.0.1", "::1"].some((address) => this.isOwn(address, port))) return true;
    return [...this.#places].some((place) => place.port === port && place.host === host);
  }
}

export const ownPlaces = new OwnPlaces();
