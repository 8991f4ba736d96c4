export interface AmdNode {
  readonly pciAddress: string;
  /** The GPU's UUID in the form of AMD's runtime, or null for a GPU without a unique id. */
  readonly uuid: string | null;
  /** The name of the GPU's instruction set, which the compiler of ROCm takes, for example `gfx942`. */
  readonly arch: string;
}

/** The UUID of an AMD GPU, as AMD's runtime forms it from the 64 bits of the GPU's unique id. */
const amdUuid = (id: bigint): string | null => (id > 0n ? `GPU-${id.toString(16).padStart(16, "0")}` : null);

/** The 64 bits in the amdgpu driver's file `unique_id`, which contains 16 hexadecimal digits. */
export function amdUuidOfFile(text: string | undefined): string | null {
  const digits = text?.trim() ?? "";
  return /^[0-9a-f]{1,16}$/i.test(digits) ? amdUuid(BigInt(`0x${digits}`)) : null;
}

/**
 * Parses the file `properties` of a node in the topology of amdkfd, whose lines are `<name> <decimal number>`. Returns null for a node in the
 * topology of amdkfd that is no GPU, such as a processor of the host.
 */
export function amdNode(properties: string): AmdNode | null {
  const value = (name: string): bigint => BigInt(new RegExp(`^${name} (\\d+)$`, "m").exec(properties)?.[1] ?? 0);
  const version = Number(value("gfx_target_version"));
  if (version === 0) return null;
  const place = Number(value("location_id"));
  const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, "0");
  // The number `location_id` of a PCI device consists of eight bits for the bus, five bits for the device and three bits for the function.
  const address = `${hex((place >> 8) & 0xff, 2)}:${hex((place >> 3) & 0x1f, 2)}.${place & 7}`;
  // The kernel reports the instruction set 9.4.2 as the number 90402, and its name is gfx942. In the name of an instruction set, for example gfx90a,
  // the minor version and the step are hexadecimal.
  const [major, minor, step] = [Math.floor(version / 10_000), Math.floor(version / 100) % 100, version % 100];
  return {
    pciAddress: `${hex(Number(value("domain")), 4)}:${address}`,
    uuid: amdUuid(value("unique_id")),
    arch: `gfx${major}${minor.toString(16)}${step.toString(16)}`,
  };
}
