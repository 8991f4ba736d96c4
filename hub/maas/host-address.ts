export interface InterfaceAddress {
  readonly interface: string;
  /** True if the interface is the machine's boot interface according to MAAS. */
  readonly boots: boolean;
  readonly address: string;
}

/**
 * If the interface that the site prefers (lifecycle 4.3) has no address, `hostAddresses` returns the addresses of the host's boot interface. MAAS
 * orders a machine's addresses by the creation of its interfaces, so the first address may belong to an interface for RoCE. `hostAddresses` returns
 * an empty list if the hub knows no address of the preferred interface and no address of the boot interface.
 */
export function hostAddresses(known: readonly InterfaceAddress[], preferredInterface: string): string[] {
  const preferred = known.filter((one) => one.interface === preferredInterface);
  const chosen = preferred.length > 0 ? preferred : known.filter((one) => one.boots);
  return chosen.map(({ address }) => address);
}
