import { execaSync } from "execa";

/** NVIDIA's assembler `ptxas` on this machine, from PATH or from `MUSTER_TEST_PTXAS`, or null if the machine has none. */
export function ptxasOfHost(): string | null {
  const program = process.env["MUSTER_TEST_PTXAS"] ?? "ptxas";
  return execaSync(program, ["--version"], { reject: false }).exitCode === 0 ? program : null;
}
