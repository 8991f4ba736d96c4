import { execa } from "execa";
import type { ApiHarness } from "./api-harness.ts";

const MAIN = new URL("../../hub/cli/main.ts", import.meta.url).pathname;

export const commandLine =
  (hub: { readonly api: ApiHarness; readonly url: string; readonly cwd: string }) =>
  async (args: readonly string[], env: Record<string, string> = {}, input = "") => {
    const settings = { MUSTER_URL: hub.url, MUSTER_TOKEN: hub.api.admin, ...env };
    const { exitCode, stdout, stderr } = await execa(process.execPath, [MAIN, ...args], {
      cwd: hub.cwd,
      env: settings,
      reject: false,
      input,
    });
    return { exitCode, stdout, stderr };
  };
