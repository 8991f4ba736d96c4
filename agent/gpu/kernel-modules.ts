/** A kernel module in /proc/modules, with the modules that use it and the number of all its users. */
export interface KernelModule {
  readonly name: string;
  readonly references: number;
  readonly usedBy: readonly string[];
}

/** Parses /proc/modules, with lines such as `nvidia 56717312 4 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (OE)`. */
export function parseModules(text: string): readonly KernelModule[] {
  return text.split("\n").flatMap((line) => {
    const [name, , references, usedBy] = line.split(" ");
    if (name === undefined || name === "" || usedBy === undefined) return [];
    return [
      { name, references: Number(references), usedBy: usedBy.split(",").filter((user) => user !== "" && user !== "-") },
    ];
  });
}

/**
 * Returns the order in which the agent must unload kernel modules, with the GPU driver `root` last. In the returned order, each kernel module stands
 * before every module that it uses. The returned list of kernel modules is empty if the GPU driver is not loaded.
 */
export function unloadOrder(modules: readonly KernelModule[], root: string): readonly string[] {
  const byName = new Map(modules.map((one) => [one.name, one]));
  const order: string[] = [];
  const visit = (name: string, above: readonly string[]): void => {
    const found = byName.get(name);
    if (found === undefined || order.includes(name) || above.includes(name)) return;
    for (const user of found.usedBy) visit(user, [...above, name]);
    order.push(name);
  };
  visit(root, []);
  return order;
}

/** The number of a kernel module's users that are no modules: processes with an open device, and parts of the kernel. */
export function otherUsers(modules: readonly KernelModule[], name: string): number {
  const found = modules.find((one) => one.name === name);
  return found === undefined ? 0 : Math.max(0, found.references - found.usedBy.length);
}
