import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { targetOf } from "./request.ts";
import { defaultToken, isLoopback } from "./token.ts";

let root: string;
let start: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-token-"));
  start = process.cwd();
  process.chdir(root);
});
afterEach(() => {
  process.chdir(start);
  rmSync(root, { recursive: true, force: true });
});
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const found = (env: Record<string, string> = {}) => {
  const read = defaultToken(root, env);
  return read.ok ? read.token : null;
};

describe("the token of the hub on this machine", () => {
  it("is that of the repository, and otherwise that of the package", () => {
    write("var/lib/muster/hub/admin-token", "of-package\n");
    expect(found()).toBe("of-package");
    write(".muster/hub/admin-token", "of-repository\n");
    expect(found()).toBe("of-repository");
  });

  it("is in the shared folder that the package's settings name", () => {
    write("var/lib/muster/hub/admin-token", "of-package");
    write("srv/muster/admin-token", "shared");
    write(
      "etc/muster/hub.env",
      "# a comment\nMUSTER_HTTP_PORT=1\n#MUSTER_SHARED_DIR=/no\n MUSTER_SHARED_DIR='/srv/muster'\n",
    );
    expect(found()).toBe("shared");
  });

  it("is in the folder of the settings in force, and nowhere else", () => {
    write(".muster/hub/admin-token", "of-repository");
    write("state/admin-token", "of-state");
    write("shared/admin-token", "of-shared");
    expect(found({ MUSTER_STATE_DIR: "state" })).toBe("of-state");
    expect(found({ MUSTER_STATE_DIR: "state", MUSTER_SHARED_DIR: "shared" })).toBe("of-shared");
    expect(found({ MUSTER_STATE_DIR: "empty" })).toBeNull();
  });

  it("is missing with the places where the command looked, and why", () => {
    write(".muster/hub/admin-token", " \n");
    mkdirSync(join(root, "var/lib/muster/hub/admin-token"), { recursive: true });
    expect(defaultToken(root, {})).toEqual({
      ok: false,
      message: `The command has no token. It looked for .muster/hub/admin-token (empty) and ${root}/var/lib/muster/hub/admin-token (EISDIR). Set MUSTER_TOKEN or MUSTER_TOKEN_FILE, give --token-file, or run the command as a user who may read the file, for example with sudo.`,
    });
  });

  it("goes to no other machine", async () => {
    write("state/admin-token", "of-state");
    const env = { HOME: root, MUSTER_STATE_DIR: "state" };
    expect((await targetOf({ hub: "http://127.0.0.1:8480" }, env)).token).toBe("of-state");
    expect(await targetOf({ hub: "https://hub.example" }, env)).toMatchObject({
      token: null,
      noToken: expect.stringContaining("goes only to the addresses localhost, 127.0.0.0/8 and ::1"),
    });
    const [here, there] = [
      ["http://localhost:1", "http://[::1]:1", "https://127.9.9.9"],
      ["http://127.0.0.1.example", "http://localhost.example", "http://10.0.0.1", "http://127.0.0.1@hub.example", "x"],
    ];
    expect([here?.filter(isLoopback), there?.filter(isLoopback)]).toEqual([here, []]);
  });
});
