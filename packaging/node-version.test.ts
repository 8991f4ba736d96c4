import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../package.json" with { type: "json" };

const CHECK = join(import.meta.dirname, "node-version.cjs");

/** Runs the check of `npm ci` in a Node.js that says it has another version. */
function under(version: string) {
  const script = `
    Object.defineProperty(process, "version", { value: "v${version}" });
    Object.defineProperty(process, "versions", { value: { node: "${version}" } });
    require(${JSON.stringify(CHECK)});`;
  const { status, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
  return { status, stderr };
}

describe("the check before an installation", () => {
  it("names the Node.js that is missing, and lets newer ones through", () => {
    expect(manifest.engines.node).toBe(">=20");
    expect(under("18.20.8")).toEqual({
      status: 1,
      stderr:
        "Muster needs Node.js 20 or newer to be installed; this is v18.20.8. Install a newer Node.js, then run npm ci again.\n",
    });
    for (const version of ["20.0.0", "24.1.0", "100.0.0"]) expect(under(version)).toEqual({ status: 0, stderr: "" });
  });
});
