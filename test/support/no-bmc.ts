import type { OpenBmc } from "../../hub/bmc/port.ts";

/** A BMC client for tests whose calls all fail with an error, and which sends no packet to a network. */
const refused = (): Promise<never> => Promise.reject(new Error("nobody asks a BMC here"));
export const NO_BMC: OpenBmc = () => ({
  power: refused,
  bootFromNetworkOnce: refused,
  powerOff: refused,
  powerOn: refused,
});
