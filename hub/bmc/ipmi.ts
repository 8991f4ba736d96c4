import { execa } from "execa";
import { withoutCredentials } from "../../shared/without-credentials.ts";
import { BmcError, type BmcErrorCode, type BmcLogin, type BmcPort, type BmcPower } from "./port.ts";

const TOOL = "ipmitool";
/** The time limit of one call of the program ipmitool, which gives up on a silent BMC after about half of this time. */
const DEADLINE_MS = 30_000;
const MAX_OUTPUT = 64 * 1024;
const TOLD = 200;

/** The numbers of two cipher suites of IPMI: number 17 uses SHA-256, and every IPMI 2.0 BMC has number 3. */
const CIPHERS = { first: "17", else: "3" } as const;

/**
 * Talks IPMI 2.0 to a BMC with Debian's program ipmitool (`lanplus`). The hub passes the BMC's password to ipmitool in the environment, which only
 * the hub's own user can read, and never as an argument. The IPMI privilege level OPERATOR, MAAS's default, is enough for power and boot device. The
 * option `-v` of ipmitool prints why a BMC refused a session; its option `-vv` would print keys. If a BMC refuses the cipher suite with SHA-256, the
 * hub repeats the call with the cipher suite that every IPMI 2.0 BMC has. A BMC refuses a cipher suite before the login, so the BMC does not count
 * the refusal as a failed login.
 */
export function ipmiBmc(login: BmcLogin, { port, signal }: { port: number; signal: AbortSignal }): BmcPort {
  const run = async (words: readonly string[], cipher: string = CIPHERS.first): Promise<string> => {
    const to = [
      "-H",
      login.address,
      "-p",
      String(port),
      "-U",
      login.user,
      "-E",
      "-L",
      "OPERATOR",
      "-N",
      "2",
      "-R",
      "3",
    ];
    const result = await execa(TOOL, ["-v", "-I", "lanplus", "-C", cipher, ...to, "chassis", ...words], {
      reject: false,
      timeout: DEADLINE_MS,
      forceKillAfterDelay: 1000,
      cancelSignal: signal,
      stdin: "ignore",
      maxBuffer: MAX_OUTPUT,
      extendEnv: false,
      env: { PATH: process.env["PATH"] ?? "", LC_ALL: "C", IPMI_PASSWORD: login.pass.reveal() },
    });
    if (result.exitCode === 0) return result.stdout;
    if (result.timedOut) throw fault(login, "no_answer", `did not answer within ${DEADLINE_MS / 1000} s`);
    if (result.exitCode === undefined) {
      if (result.code === "ENOENT") throw fault(login, "tool_missing", `cannot be asked: ${TOOL} is not installed`);
      throw fault(login, "no_answer", `could not be asked: ${TOOL} ended by ${result.signal ?? "a fault"}`);
    }
    const told = result.stderr;
    if (CIPHER_REFUSED.test(told) && cipher === CIPHERS.first) return run(words, CIPHERS.else);
    const code = codeOf(told);
    throw fault(login, code, `${SAYS[code]} (${words.join(" ")}: ${lastWord(told, login)})`);
  };
  const act = async (words: readonly string[]): Promise<void> => void (await run(words));
  return {
    power: async () => powerOf(login, await run(["power", "status"])),
    bootFromNetworkOnce: () => act(["bootdev", "pxe", "options=efiboot"]),
    powerOff: () => act(["power", "off"]),
    powerOn: () => act(["power", "on"]),
  };
}

const CIPHER_REFUSED = /open session response.*(algorithm|cipher)/i;
/** Matches the texts of IPMI 2.0's RAKP status codes, and ipmitool's own text for a password of the wrong length. */
const LOGIN_REFUSED =
  /RAKP \d HMAC is invalid|RAKP.*(unauthorized|invalid role|inactive|illegal)|password.*(invalid|verification)|privilege/i;
const NO_SESSION = /Unable to establish|Authentication Capabilities|timed? ?out|Could not open socket|Address lookup/i;

/** Returns the error code for the text that ipmitool printed in a failed call. */
export function codeOf(told: string): Extract<BmcErrorCode, "no_answer" | "login_refused" | "action_failed"> {
  if (LOGIN_REFUSED.test(told)) return "login_refused";
  return NO_SESSION.test(told) ? "no_answer" : "action_failed";
}

const SAYS = {
  no_answer: "opened no IPMI session",
  login_refused: "refused the login",
  action_failed: "did not carry out the command",
} as const;

function powerOf(login: BmcLogin, told: string): BmcPower {
  const word = /Power is (on|off)/i.exec(told)?.[1]?.toLowerCase();
  if (word === "on" || word === "off") return word;
  throw fault(login, "action_failed", "did not say whether the power is on");
}

const lastWord = (told: string, { pass }: BmcLogin): string =>
  withoutCredentials(told.trim().split("\n").slice(-2).join("; "), [pass]).slice(0, TOLD);

const fault = (login: BmcLogin, code: BmcErrorCode, what: string): BmcError =>
  new BmcError(code, login, `BMC ${login.address} ${what}.`);
