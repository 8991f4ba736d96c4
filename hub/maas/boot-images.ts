interface BootResource {
  readonly name: string;
  readonly architecture: string;
}

/** In MAAS, `amd64/generic` and `amd64/ga-24.04` are kernels of one architecture. MAAS chooses which kernel of an architecture boots. */
const machineOf = (architecture: string): string => architecture.split("/", 1)[0] ?? "";

/**
 * True if MAAS has the image that the profile deploys (lifecycle 4.14). Depending on its version, MAAS lists uploaded images with or without their
 * namespace `custom/`.
 */
export const hasBootImage = (
  images: readonly BootResource[],
  wanted: { readonly series: string; readonly architecture: string },
): boolean =>
  images.some(
    ({ name, architecture }) =>
      (name === wanted.series || `custom/${name}` === wanted.series) &&
      machineOf(architecture) === machineOf(wanted.architecture),
  );

/**
 * Returns the scripts that a profile names and MAAS does not have. The word `none` in the list of test scripts is MAAS's keyword for no tests (maas
 * 2.5).
 */
export const missingScripts = (
  known: { readonly commissioning: ReadonlySet<string>; readonly testing: ReadonlySet<string> },
  wanted: { readonly commissioning: readonly string[]; readonly testing: readonly string[] },
): string[] => [
  ...wanted.commissioning.filter((name) => !known.commissioning.has(name)),
  ...wanted.testing.filter((name) => name !== "none" && !known.testing.has(name)),
];
