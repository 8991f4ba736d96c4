import type { Secret } from "../../shared/secret.ts";

/** How a BMC is spoken to; of a login that says nothing it is IPMI. */
export const BMC_DRIVERS = ["ipmi", "redfish"] as const;
export type BmcDriver = (typeof BMC_DRIVERS)[number];

export interface BmcLogin {
  readonly driver: BmcDriver;
  /** IPv4 or IPv6 address. */
  readonly address: string;
  readonly user: string;
  readonly pass: Secret;
}

/** `changing`: the BMC is at it. */
export type BmcPower = "on" | "off" | "changing";

/**
 * What the hub asks of a BMC by itself: to boot a host from the network that MAAS does not know yet, so that nobody else can (lifecycle 4.3). Each call
 * has a deadline of its own and throws `BmcError` only. None retries: the caller looks at the power again, and does what is still to do.
 */
export interface BmcPort {
  power(): Promise<BmcPower>;
  /** The next boot alone; it lapses after a minute on some BMCs, so it is said right before the power is switched on. */
  bootFromNetworkOnce(): Promise<void>;
  /** At once, without asking the system. */
  powerOff(): Promise<void>;
  powerOn(): Promise<void>;
}

/** `signal` ends a call when the run no longer counts. */
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
