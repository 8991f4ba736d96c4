interface BootResource {
  readonly name: string;
  readonly architecture: string;
}

/** `amd64/generic` and `amd64/ga-24.04` are kernels of one architecture; which of them boots is MAAS's affair. */
const machineOf = (architecture: string): string => architecture.split("/", 1)[0] ?? "";

/** Whether MAAS has an image to deploy (lifecycle 4.14). It lists uploaded ones with and without their namespace, by version. */
export const hasBootImage = (
  images: readonly BootResource[],
  wanted: { readonly series: string; readonly architecture: string },
): boolean =>
  images.some(
    ({ name, architecture }) =>
      (name === wanted.series || `custom/${name}` === wanted.series) &&
      machineOf(architecture) === machineOf(wanted.architecture),
  );

/** Scripts that a profile names and MAAS does not have; `none` among the tests is MAAS's own word for no test (maas 2.5). */
export const missingScripts = (
  known: { readonly commissioning: ReadonlySet<string>; readonly testing: ReadonlySet<string> },
  wanted: { readonly commissioning: readonly string[]; readonly testing: readonly string[] },
): string[] => [
  ...wanted.commissioning.filter((name) => !known.commissioning.has(name)),
  ...wanted.testing.filter((name) => name !== "none" && !known.testing.has(name)),
];
