import { execaSync } from "execa";

/** Returns the path of NVIDIA's assembler `ptxas`, from PATH or `MUSTER_TEST_PTXAS`, or null if this computer has none. */
export function ptxasOfHost(): string | null {
  const program = process.env["MUSTER_TEST_PTXAS"] ?? "ptxas";
  return execaSync(program, ["--version"], { reject: false }).exitCode === 0 ? program : null;
}
