import type { OpenBmc } from "../../hub/bmc/port.ts";

/** Every call of this BMC client fails with an error, and the client sends no packet to a network. */
const refused = (): Promise<never> => Promise.reject(new Error("nobody asks a BMC here"));
export const NO_BMC: OpenBmc = () => ({
  power: refused,
  bootFromNetworkOnce: refused,
  powerOff: refused,
  powerOn: refused,
});
