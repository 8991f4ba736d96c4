export const SUDOERS_FOLDER = "/etc/sudoers.d";

/** The agent's uninstall removes all sudoers files whose names begin with `90-muster-`. */
export const sudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/90-muster-allocation-${allocationId}`;

/** `sudo` ignores sudoers files whose names contain a dot, such as a file that `visudo` has not checked. */
export const uncheckedSudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/.muster-${allocationId}.new`;

/** Matches the temporary files that an agent leaves behind if it is killed while it writes a file. */
export const CUT_WRITE = /^[.][0-9a-f]{12}[.]tmp$/;

/** The tenant's account has no password, so its sudo rule must not require one. */
export const sudoersText = (loginUser: string): string =>
  `# Written by muster-agent for a tenant with root.\n${loginUser} ALL=(ALL:ALL) NOPASSWD: ALL\n`;
