/** An address of a machine, and the interface that has it. */
export interface InterfaceAddress {
  readonly interface: string;
  /** The interface by which the machine boots, as MAAS has it. */
  readonly boots: boolean;
  readonly address: string;
}

/**
 * The addresses by which a deployed host is reached: those of the site's preferred interface (lifecycle 4.3), else those of the one that it boots by.
 * MAAS lists a machine's addresses in the order in which its interfaces were made, so the first of them may be one of its RoCE links. Empty where
 * neither has one, or where nothing is known of the interfaces.
 */
export function hostAddresses(known: readonly InterfaceAddress[], preferredInterface: string): string[] {
  const preferred = known.filter((one) => one.interface === preferredInterface);
  const chosen = preferred.length > 0 ? preferred : known.filter((one) => one.boots);
  return chosen.map(({ address }) => address);
}
