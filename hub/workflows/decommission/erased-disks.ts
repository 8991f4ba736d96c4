import type { MaasBlockDevice, WipedDisk, WipeMethod } from "../../maas/port.ts";
import type { DecommissionInput } from "./decommission-context.ts";

/**
 * One disk of the machine, with the method of its erase. The method `not_listed` means that MAAS's release script left the disk out, e.g. because the
 * disk is write-protected.
 */
export interface ErasedDisk {
  readonly name: string;
  readonly serial: string;
  readonly method: WipeMethod | "not_listed";
}

type Erase = Exclude<DecommissionInput["erase"], "none">;
/**
 * The methods of MAAS that are at least as strong as the requested kind of erase. MAAS gives the command behind `write_zeroes` a wrong number of
 * blocks, so `write_zeroes` is weaker than a quick erase.
 */
const ENOUGH: Readonly<Record<Erase, readonly ErasedDisk["method"][]>> = {
  quick: ["quick", "zero", "secure"],
  secure: ["secure"],
};

/** All disks of the machine that MAAS knows or that the release script lists, each with the method of its erase. */
export function erasedDisks(
  wiped: readonly WipedDisk[],
  known: readonly Pick<MaasBlockDevice, "name" | "serial" | "type">[],
): readonly ErasedDisk[] {
  const serials = new Map(known.filter(({ type }) => type === "physical").map(({ name, serial }) => [name, serial]));
  const methods = new Map<string, ErasedDisk["method"]>(wiped.map(({ name, method }) => [name, method]));
  return [...new Set([...serials.keys(), ...methods.keys()])]
    .toSorted()
    .map((name) => ({ name, serial: serials.get(name) ?? "", method: methods.get(name) ?? "not_listed" }));
}

export const weakerDisks = (asked: Erase, disks: readonly ErasedDisk[]): readonly ErasedDisk[] =>
  disks.filter(({ method }) => !ENOUGH[asked].includes(method));

export function nameDisks(disks: readonly ErasedDisk[], most = 16): string {
  const named = disks.slice(0, most).map(({ name, serial, method }) => {
    const of = serial === "" ? "" : ` (${serial.slice(0, 64)})`;
    return `${name.slice(0, 64)}${of} ${method}`;
  });
  const more = disks.length - named.length;
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
