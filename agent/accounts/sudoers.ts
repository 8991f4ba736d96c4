export const SUDOERS_FOLDER = "/etc/sudoers.d";

/** The agent's uninstall removes all files of this folder whose names begin with `90-muster-`. */
export const sudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/90-muster-allocation-${allocationId}`;

/** The file that `visudo` checks before it gets its final name. `sudo` ignores files whose names contain a dot. */
export const uncheckedSudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/.muster-${allocationId}.new`;

/** The name of a file that an agent was writing when it was killed. */
export const CUT_WRITE = /^[.][0-9a-f]{12}[.]tmp$/;

/** The account has no password, so sudo must not ask for one. */
export const sudoersText = (loginUser: string): string =>
  `# Written by muster-agent for a tenant with root.\n${loginUser} ALL=(ALL:ALL) NOPASSWD: ALL\n`;
