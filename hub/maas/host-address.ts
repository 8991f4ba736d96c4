/** An address of a machine, and the interface that has this address. */
export interface InterfaceAddress {
  readonly interface: string;
  /** True if the interface is the machine's boot interface according to MAAS. */
  readonly boots: boolean;
  readonly address: string;
}

/**
 * Returns the addresses of a deployed host's preferred interface, which the site names (lifecycle 4.3). If the preferred interface has no address,
 * `hostAddresses` returns the addresses of the host's boot interface. MAAS orders a machine's addresses by the creation of its interfaces, so the
 * first address may be the address of a RoCE row. `hostAddresses` returns an empty list if neither the preferred interface nor the boot interface has
 * an address, as far as the hub knows.
 */
export function hostAddresses(known: readonly InterfaceAddress[], preferredInterface: string): string[] {
  const preferred = known.filter((one) => one.interface === preferredInterface);
  const chosen = preferred.length > 0 ? preferred : known.filter((one) => one.boots);
  return chosen.map(({ address }) => address);
}
