import { cpus, release, totalmem } from "node:os";

export function describeMachine(): string {
  const [cpu] = cpus();
  return `${cpus().length} cores (${cpu?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 1024 ** 3)} GiB memory, Linux ${release()}, Node ${process.versions.node}`;
}
