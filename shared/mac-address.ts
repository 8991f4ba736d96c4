/**
 * True for a MAC address, in lower case, that only one machine can have. Software chooses locally administered MAC addresses, so several machines may
 * have the same one. A MAC address of a group (multicast) belongs to no single machine. The operating system shows the MAC address of zeros for an
 * interface without a MAC address of its own.
 */
export const isOfOneMachine = (mac: string): boolean => /^[0-9a-f][048c]/.test(mac) && mac !== "00:00:00:00:00:00";
