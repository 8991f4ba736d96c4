import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bootstrapConditions } from "./bootstrap-status.ts";
import { createLog } from "./log.ts";
import { type System, systemAt } from "./system/system.ts";

let root: string;
let system: System;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "muster-bootstrap-status-"));
  system = systemAt(root, createLog());
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (name: string, text: string): void => {
  mkdirSync(join(root, "var/lib/muster/bootstrap"), { recursive: true });
  writeFileSync(join(root, "var/lib/muster/bootstrap", name), text);
};
const part = (name: string, owner: "site" | "muster", exit_code: number | null, message = "m"): void =>
  write(
    `${name}.status`,
    JSON.stringify({
      part: name,
      owner,
      started_at: "s",
      ended_at: exit_code === null ? null : "e",
      exit_code,
      message,
    }),
  );
const told = async () => (await bootstrapConditions(system)).map(({ type, status, reason }) => [type, status, reason]);

describe("the conditions of the first boot", () => {
  it("are absent when no part ever ran", async () => {
    expect(await told()).toEqual([]);
  });

  it("stay open between two parts: a part that has not begun counts, another program's script does not", async () => {
    const scripts = join(root, "var/lib/cloud/instance/scripts");
    mkdirSync(scripts, { recursive: true });
    for (const name of ["20-agent-bootstrap", "40-extra-disks"])
      writeFileSync(join(scripts, `${name}.sh`), 'STATE_DIR="$ROOT/var/lib/muster/bootstrap"\n');
    writeFileSync(join(scripts, "50-others.sh"), "echo hello\n");
    part("20-agent-bootstrap", "muster", 0);
    expect(await bootstrapConditions(system)).toMatchObject([
      { type: "bootstrap.muster", status: "Unknown", message: "40-extra-disks has not ended: it has not begun" },
    ]);
    part("40-extra-disks", "muster", 0);
    expect(await told()).toEqual([["bootstrap.muster", "True", "Completed"]]);
  });

  it("distinguish the site's bundle from Muster's parts", async () => {
    part("10-site-bootstrap", "site", 7, "site bundle base ended with status 7");
    part("20-agent-bootstrap", "muster", 0);
    expect(await told()).toEqual([
      ["bootstrap.site", "False", "PartFailed"],
      ["bootstrap.muster", "True", "Completed"],
    ]);
    const [site] = await bootstrapConditions(system);
    expect(site?.message).toBe("10-site-bootstrap ended with 7: site bundle base ended with status 7");
  });

  it("are open while a part runs, unless another part has failed", async () => {
    part("20-agent-bootstrap", "muster", 0);
    part("30-hardware-sync", "muster", null, "running");
    expect(await told()).toEqual([["bootstrap.muster", "Unknown", "Running"]]);
    part("40-extra-disks", "muster", 4);
    expect(await told()).toEqual([["bootstrap.muster", "False", "PartFailed"]]);
  });

  it.each(["", "null", "{", '{"part":"x"}'])(
    "treat a status file of %j as a part that has not ended, and not as a success or a failure",
    async (text) => {
      part("20-agent-bootstrap", "muster", 0);
      write("60-deploy-user.status", text);
      const [condition] = await bootstrapConditions(system);
      expect(condition).toMatchObject({ status: "Unknown", reason: "Running" });
      expect(condition?.message).toContain("60-deploy-user has not ended: its status file ");
    },
  );

  const systemd = (says: string): void => {
    mkdirSync(join(root, "usr/bin"), { recursive: true });
    const script = `#!/bin/sh\n[ "$*" = "show --property=ActiveState --property=Job muster-bootstrap.service" ] || exit 9\n${says}\n`;
    writeFileSync(join(root, "usr/bin/systemctl"), script, { mode: 0o755 });
  };
  it.each([
    ["is due after cloud-init's own run", "echo Job=77; echo ActiveState=inactive", "TriedAgain"],
    ["runs", "echo ActiveState=active", "TriedAgain"],
    ["starts", "echo Job=77; echo ActiveState=activating", "TriedAgain"],
    ["has ended", "echo ActiveState=inactive", "PartFailed"],
    ["has failed", "echo ActiveState=failed", "PartFailed"],
    ["cannot be asked for", "exit 1", "TriedAgain"],
  ])("decide whether a failure is final when the repeating unit %s", async (_, says, reason) => {
    part("10-site-bootstrap", "site", 7);
    part("20-agent-bootstrap", "muster", 0);
    part("30-hardware-sync", "muster", 3, "could not install wget");
    systemd(says);
    const status = reason === "PartFailed" ? "False" : "Unknown";
    expect(await told()).toEqual([
      ["bootstrap.site", status, reason],
      ["bootstrap.muster", status, reason],
    ]);
    const [, muster] = await bootstrapConditions(system);
    expect(muster?.message).toContain("30-hardware-sync ended with 3: could not install wget");
  });

  it("do not call systemd while no part has failed", async () => {
    part("20-agent-bootstrap", "muster", 0);
    systemd(`touch "${root}/asked"`);
    await told();
    expect(await system.isPresent("/asked")).toBe(false);
  });

  it("ignore other files", async () => {
    part("20-agent-bootstrap", "muster", 0);
    write("site-bootstrap.sha256", "abc");
    expect(await told()).toEqual([["bootstrap.muster", "True", "Completed"]]);
  });
});
