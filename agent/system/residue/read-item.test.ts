import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { readItems } from "./read-item.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

it("leaves a secret that a tool printed out of the reason why an item is unreadable", async () => {
  host.tool("dpkg", `echo '{"access_token": "onelongsecret"}'`);
  const readings: unknown[] = [];
  for await (const one of readItems({ root: host.root, tenant: null, items: ["package_files"], pauseMs: 1 }))
    readings.push(one);
  expect(readings).toMatchObject([
    { item: "package_files", reading: { unreadable: expect.stringMatching(/unknown line.*\[redacted\]/) } },
  ]);
  expect(JSON.stringify(readings)).not.toContain("secret");
});
