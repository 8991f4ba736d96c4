import type { OpenBmc } from "../../hub/bmc/port.ts";

/** A BMC client for tests without a BMC. Every call fails with an error, and no packet leaves the machine. */
const refused = (): Promise<never> => Promise.reject(new Error("nobody asks a BMC here"));
export const NO_BMC: OpenBmc = () => ({
  power: refused,
  bootFromNetworkOnce: refused,
  powerOff: refused,
  powerOn: refused,
});
