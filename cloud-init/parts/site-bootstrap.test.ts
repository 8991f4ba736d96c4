import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { UserDataInput } from "../input.ts";
import { HostFolder, sampleInput, skipWithout } from "../part.fixture.ts";

// Each test starts real shells, which take long on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const PART = "10-site-bootstrap.sh";
const QUICK = { MUSTER_DOWNLOAD_ATTEMPTS: "2", MUSTER_DOWNLOAD_PAUSE_SECONDS: "0" };
let folder: HostFolder;
let server: Server | undefined;
let asked: (string | undefined)[];
beforeEach(() => {
  asked = [];
  folder = new HostFolder();
});
afterEach(() => {
  folder.remove();
  server?.close();
});

const served = async (bundle: Buffer | string, changes: object = {}): Promise<UserDataInput> => {
  const bytes = Buffer.from(bundle);
  const listening = createServer((request, response) => {
    asked.push(request.url);
    response.end(bytes);
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/bundle`;
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return sampleInput({ siteBootstrap: { ref: "site/base", version: "7", url, sha256, ...changes } });
};
const script = (body: string) => `#!/bin/bash\n${body}\n`;

describe.skipIf(skipWithout("curl", "curl"))("site bootstrap in a folder", () => {
  it("fetches, verifies and runs the site's bundle once", async () => {
    const input = await served(script('echo "$MUSTER_HOSTNAME $MUSTER_SITE_BUNDLE_REF" >>"$MUSTER_ROOT/ran"'));
    expect(await folder.run(PART, input)).toMatchObject({ code: 0, status: { owner: "site", exit_code: 0 } });
    expect(await folder.run(PART, input)).toMatchObject({
      code: 0,
      status: { message: expect.stringContaining("has run before") },
    });
    expect(folder.read("ran")).toBe("gpu-01 site/base\n");
  });

  it("runs bootstrap.sh of a tarball", async () => {
    folder.write("pack/bootstrap.sh", script('cp beside "$MUSTER_ROOT/ran"'), 0o755);
    folder.write("pack/beside", "tarball\n");
    const { stdout } = spawnSync("tar", ["-C", folder.path("pack"), "-czf", "-", "bootstrap.sh", "beside"]);
    expect((await folder.run(PART, await served(stdout))).code).toBe(0);
    expect(folder.read("ran")).toBe("tarball\n");
  });

  it("ends with the bundle's status as the site's failure, and runs the bundle again next time", async () => {
    const input = await served(script('echo x >>"$MUSTER_ROOT/ran"; exit 42'));
    for (const _ of [1, 2]) {
      expect(await folder.run(PART, input)).toMatchObject({
        code: 42,
        status: { owner: "site", exit_code: 42, message: expect.stringContaining("ended with status 42") },
      });
    }
    expect(folder.read("ran")).toBe("x\nx\n");
  });

  it("ends a hanging bundle", async () => {
    const input = await served(script("sleep 600"), { timeoutSeconds: 1 });
    expect(await folder.run(PART, input)).toMatchObject({
      code: 124,
      status: { message: expect.stringContaining("within 1 seconds") },
    });
  });

  it("runs no bundle with a different checksum", async () => {
    const input = await served(script('touch "$MUSTER_ROOT/ran"'), { sha256: "1".repeat(64) });
    expect(await folder.run(PART, input)).toMatchObject({ code: 1, status: { owner: "site", exit_code: 1 } });
    expect(() => folder.read("ran")).toThrow();
  });

  it("keeps the secret of a signed address out of output, status and arguments", async () => {
    folder.tool("curl", `exec "$(PATH=\${PATH#*:*:} command -v curl)" "$@"`);
    const input = await served(script("exit 3"));
    const url = `${input.siteBootstrap?.url}?X-Signature=SECRET%22&b=[1]\\"`;
    const siteBootstrap = { ...input.siteBootstrap, url } as UserDataInput["siteBootstrap"];
    const run = await folder.run(PART, { ...input, siteBootstrap });
    expect(run).toMatchObject({ code: 3, status: { exit_code: 3 } });
    expect(asked).toEqual(['/bundle?X-Signature=SECRET%22&b=[1]\\"']);
    expect(folder.calls().some((call) => call.startsWith("curl "))).toBe(true);
    expect(JSON.stringify([run, folder.calls()])).not.toContain("SECRET");
  });

  it("leaves a failed status when the bundle cannot be fetched", async () => {
    expect(await folder.run(PART, sampleInput(), QUICK)).toMatchObject({
      code: 1,
      status: { owner: "site", message: expect.stringContaining("could not be fetched in 2 attempts") },
    });
  });
});
