import { afterEach, beforeEach, expect, it } from "vitest";
import type { ResidueItem } from "../../../shared/residue/items.ts";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { readItems } from "./read-item.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

async function read(item: ResidueItem): Promise<string> {
  const items = { root: host.root, tenant: null, items: [item], pauseMs: 1 };
  for await (const { reading } of readItems(items)) return "unreadable" in reading ? reading.unreadable : "readable";
  return "not read";
}

it("leaves a secret that a tool printed out of the reason why an item is unreadable", async () => {
  host.tool("dpkg", `echo '{"access_token": "onelongsecret"}'`);
  const told = await read("package_files");
  expect(told).toMatch(/unknown line.*\[redacted\]/);
  expect(told).not.toContain("secret");
});

it("finds a secret on a line of its own, before it escapes the line's end", async () => {
  host.write("proc/driver/nvidia/params", "RmLogonRC: 1\n");
  host.tool("nvidia-smi", "printf 'no driver\\n$6$salt$onelongsecret\\nend of it'; exit 9");
  expect(await read("gpu_state")).toBe("nvidia-smi ended with status 9: no driver\\u{a}[redacted]\\u{a}end of it");
});
