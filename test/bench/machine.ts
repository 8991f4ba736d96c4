import { cpus, release, totalmem } from "node:os";

/** The machine in words, for whoever reads the figures later. */
export function describeMachine(): string {
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 1024 ** 3)} GiB memory, Linux ${release()}, Node ${process.versions.node}`;
}
