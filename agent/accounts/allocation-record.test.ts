import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { takeUid } from "./allocation-record.ts";

describe("the uid of a tenant's account", () => {
  let host: HostFolder;
  beforeEach(() => {
    host = new HostFolder();
    host.tool("getent", "exit 2");
    host.write("etc/passwd", "ada:x:20007:20007::/home/ada:/bin/bash\n");
  });
  afterEach(() => host.remove());

  it("is above the uids of tenants of an earlier system of the machine, which only the hub knows", async () => {
    expect(await takeUid(host.system, 20_005)).toBe(20_005);
    // The agent's own file names a higher uid than the hub.
    expect(await takeUid(host.system)).toBe(20_006);
    // An account of the host has the next uid.
    expect(await takeUid(host.system, 20_003)).toBe(20_008);
    expect(await takeUid(host.system, 30_000)).toBe(30_000);
  });

  it("is not given if the hub knows that all uids were given", async () => {
    await expect(takeUid(host.system, 60_000)).rejects.toThrow("Allocate another host");
  });
});
