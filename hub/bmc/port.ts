import type { Secret } from "../../shared/secret.ts";

/** The protocol of a BMC; a login that names none uses IPMI. */
export const BMC_DRIVERS = ["ipmi", "redfish"] as const;
export type BmcDriver = (typeof BMC_DRIVERS)[number];

export interface BmcLogin {
  readonly driver: BmcDriver;
  /** IPv4 or IPv6 address. */
  readonly address: string;
  readonly user: string;
  readonly pass: Secret;
}

/** `changing`: the BMC is switching the power. */
export type BmcPower = "on" | "off" | "changing";

/**
 * The hub's own requests to a BMC: they boot a host from the network that MAAS does not know yet, so MAAS cannot do it (lifecycle 4.3). Each call
 * has its own deadline and throws only `BmcError`. No call retries: the caller reads the power again and does the remaining steps.
 */
export interface BmcPort {
  power(): Promise<BmcPower>;
  /** Applies only to the next boot. Some BMCs forget the boot device after a minute, so it is set right before the power is switched on. */
  bootFromNetworkOnce(): Promise<void>;
  /** Switches off at once, without asking the operating system. */
  powerOff(): Promise<void>;
  powerOn(): Promise<void>;
}

/** `signal` aborts a call when the run no longer counts. */
export type OpenBmc = (login: BmcLogin, signal: AbortSignal) => BmcPort;

export const BMC_ERRORS = ["no_answer", "login_refused", "action_failed", "untrusted", "tool_missing"] as const;
export type BmcErrorCode = (typeof BMC_ERRORS)[number];

export class BmcError extends Error {
  readonly code: BmcErrorCode;
  readonly driver: BmcDriver;
  readonly address: string;
  constructor(code: BmcErrorCode, { driver, address }: Pick<BmcLogin, "driver" | "address">, message: string) {
    super(message);
    this.name = "BmcError";
    this.code = code;
    this.driver = driver;
    this.address = address;
  }
}
