import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { fault } from "./mount-disk.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

it.each(["", ">&2"])("leaves a secret that a tool of disks printed out of the fault (%s)", async (where) => {
  host.tool("mount", `echo 'mount: username=ada,password=onelongsecret,vers=3 is refused' ${where}; exit 32`);
  expect(await fault({ tool: "mount", args: [] }, host.system.attempt, 10_000)).toBe(
    "mount ended with status 32: mount: username=ada,password=[redacted],vers=3 is refused.",
  );
});
