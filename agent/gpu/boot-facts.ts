import type { System } from "../system/system.ts";

const FIRMWARE = "/sys/firmware";
const GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
const SHIM = "605dab50-e046-4300-abb6-3dd810dd8b23";
const LOCKDOWN = "/sys/kernel/security/lockdown";
/** A file of efivars begins with four bytes of attributes. */
const ATTRIBUTE_BYTES = 4;

/**
 * Facts about how the host's firmware started the running operating system. A fact that the agent could not read is null, which the hub reports as
 * unknown.
 */
export interface BootFacts {
  readonly secure_boot: "on" | "off" | null;
  readonly lockdown: string | null;
}

export async function bootFacts(system: System): Promise<BootFacts> {
  const lockdown = /\[(\w+)\]/.exec((await textOf(system, LOCKDOWN)) ?? "")?.[1] ?? null;
  return { secure_boot: await secureBoot(system), lockdown };
}

/**
 * Secure Boot counts as on only if the firmware checks the boot loader and has its keys, and the boot loader `shim` checks the kernel: the owner of a
 * host can turn off shim's own checks. A host that started without UEFI has no Secure Boot.
 */
async function secureBoot(system: System): Promise<BootFacts["secure_boot"]> {
  const isUefi = await system.isPresent(`${FIRMWARE}/efi`);
  if (!isUefi) return (await system.isPresent(`${FIRMWARE}/dmi`)) ? "off" : null;
  const isOn = await flagOf(system, `SecureBoot-${GLOBAL}`);
  if (isOn === null) return null;
  const [isSetup, isUnchecked] = [
    await flagOf(system, `SetupMode-${GLOBAL}`),
    await flagOf(system, `MokSBStateRT-${SHIM}`),
  ];
  return isOn && isSetup !== true && isUnchecked !== true ? "on" : "off";
}

async function flagOf(system: System, name: string): Promise<boolean | null> {
  const text = await textOf(system, `${FIRMWARE}/efi/efivars/${name}`);
  const value = text?.charCodeAt(ATTRIBUTE_BYTES);
  return value === 1 ? true : value === 0 ? false : null;
}

/** A file with a fact about the host's boot that the agent may not read is like a missing file, because both leave the fact unknown. */
const textOf = (system: System, path: string): Promise<string | null> => system.read(path).catch(() => null);
