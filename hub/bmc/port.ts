import type { Secret } from "../../shared/secret.ts";

/** The protocols by which Muster controls a BMC. A BMC login that names no protocol uses IPMI. */
export const BMC_DRIVERS = ["ipmi", "redfish"] as const;
export type BmcDriver = (typeof BMC_DRIVERS)[number];

export interface BmcLogin {
  readonly driver: BmcDriver;
  readonly address: string;
  readonly user: string;
  readonly pass: Secret;
}

/** The power state `changing` means that the BMC switches the host's power on or off at this moment. */
export type BmcPower = "on" | "off" | "changing";

/**
 * The hub's own requests to a BMC, by which the hub boots a host from the network before MAAS knows the host (lifecycle 4.3). Each call to a BMC has
 * its own deadline and throws only `BmcError`. A call to a BMC never retries; after a failed call, the caller reads the power state and continues
 * with the steps that remain.
 */
export interface BmcPort {
  power(): Promise<BmcPower>;
  /**
   * Makes the host boot from the network once, at its next boot. Some BMCs forget the boot device after a minute, so the hub sets the boot device
   * right before it switches the power on.
   */
  bootFromNetworkOnce(): Promise<void>;
  /** Switches the host's power off at once, without asking the operating system. */
  powerOff(): Promise<void>;
  powerOn(): Promise<void>;
}

/** The argument `signal` aborts the calls to the BMC when the hub stops or loses its lease on the workflow. */
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
