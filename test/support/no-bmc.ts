import type { OpenBmc } from "../../hub/bmc/port.ts";

/** For services under which no BMC is asked: whoever asks one all the same is told by its error, and no packet leaves the machine. */
const refused = (): Promise<never> => Promise.reject(new Error("nobody asks a BMC here"));
export const NO_BMC: OpenBmc = () => ({
  power: refused,
  bootFromNetworkOnce: refused,
  powerOff: refused,
  powerOn: refused,
});
