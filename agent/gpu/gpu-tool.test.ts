import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { callDriver } from "./gpu-tool.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

it.each(["", ">&2"])("leaves out a secret whose name the cut would remove (%s)", async (where) => {
  host.tool("amd-smi", `printf '{"access_token": "onelongsecret"}%0170d' 0 ${where}; exit 1`);
  const { said } = await callDriver(host.system, "amd-smi", [], { timeoutMs: 10_000, graceMs: 100 });
  expect(said).toHaveLength(200);
  expect(said).toContain("[redacted]");
  expect(said).not.toContain("secret");
});
