import { cpus, release, totalmem } from "node:os";

/** Describes the machine on which the benchmark runs, for readers of the figures. */
export function describeMachine(): string {
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 1024 ** 3)} GiB memory, Linux ${release()}, Node ${process.versions.node}`;
}
