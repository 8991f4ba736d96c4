export const SUDOERS_FOLDER = "/etc/sudoers.d";

/** The agent's uninstall removes all files of this folder whose names begin with `90-muster-`. */
export const sudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/90-muster-allocation-${allocationId}`;

/** The account has no password, so sudo must not ask for one. */
export const sudoersText = (loginUser: string): string =>
  `# Written by muster-agent for a tenant with root.\n${loginUser} ALL=(ALL:ALL) NOPASSWD: ALL\n`;
