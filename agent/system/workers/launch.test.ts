import { afterEach, beforeEach, expect, it } from "vitest";
import { HostFolder } from "../../../test/fakes/hub/host-folder.ts";
import { lastLines } from "./launch.ts";
import { LOG_FILE } from "./work-files.ts";

let host: HostFolder;
beforeEach(() => {
  host = new HostFolder();
});
afterEach(() => host.remove());

it("leaves out of the last lines of a log a secret whose name the cut would remove", () => {
  host.write(LOG_FILE, `{"access_token": "onelongsecret"}${".".repeat(480)}`);
  expect(lastLines(host.root)).toContain("[redacted]");
  expect(lastLines(host.root)).not.toContain("secret");
});
