import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Secret } from "../../shared/secret.ts";
import { codeOf, ipmiBmc } from "./ipmi.ts";

/** Texts that ipmitool 1.8.19 prints with `-v`. */
const SESSION = "Error: Unable to establish IPMI v2 / RMCP+ session";
it.each([
  [`> RAKP 2 HMAC is invalid\n${SESSION}`, "login_refused"],
  [`RAKP 2 message indicates an error : unauthorized name\n${SESSION}`, "login_refused"],
  [`RAKP 4 message indicates an error : unauthorized role or privilege level requested\n${SESSION}`, "login_refused"],
  ["Set Session Privilege Level to OPERATOR failed: insufficient privilege", "login_refused"],
  [
    `Get Auth Capabilities error\nError issuing Get Channel Authentication Capabilities request\n${SESSION}`,
    "no_answer",
  ],
  [SESSION, "no_answer"],
  ["Address lookup for 10.0.0.1 failed", "no_answer"],
  ["Set Chassis Power Control to Up/On failed: Command not supported in present state", "action_failed"],
  ["", "action_failed"],
])("%s", (told, code) => expect(codeOf(told)).toBe(code));

it("repeats no password that ipmitool printed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "muster-ipmitool-"));
  const path = process.env["PATH"];
  try {
    writeFileSync(join(folder, "ipmitool"), '#!/bin/sh\necho "the BMC refuses $IPMI_PASSWORD" >&2\nexit 1\n');
    chmodSync(join(folder, "ipmitool"), 0o755);
    process.env["PATH"] = `${folder}:${path}`;
    const login = { driver: "ipmi", address: "10.0.0.1", user: "ann", pass: new Secret("horse staple") } as const;
    const { signal } = new AbortController();
    await expect(ipmiBmc(login, { port: 623, signal }).power()).rejects.toThrow(
      "did not carry out the command (power status: the BMC refuses [redacted])",
    );
  } finally {
    process.env["PATH"] = path;
    rmSync(folder, { recursive: true, force: true });
  }
});
