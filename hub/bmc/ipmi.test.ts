import { expect, it } from "vitest";
import { codeOf } from "./ipmi.ts";

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
