export const SUDOERS_FOLDER = "/etc/sudoers.d";

/** The sudoers file of an allocation's account. The agent's uninstall removes all files in /etc/sudoers.d whose names begin with `90-muster-`. */
export const sudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/90-muster-allocation-${allocationId}`;

/** The path of a new sudoers file that `visudo` has not checked yet. `sudo` ignores files in /etc/sudoers.d whose names contain a dot. */
export const uncheckedSudoersFile = (allocationId: string): string => `${SUDOERS_FOLDER}/.muster-${allocationId}.new`;

/** The names of temporary files that an agent leaves behind when it is killed during a write. */
export const CUT_WRITE = /^[.][0-9a-f]{12}[.]tmp$/;

/** The text of a tenant's sudoers file. The tenant's account has no password, so sudo must not ask for a password. */
export const sudoersText = (loginUser: string): string =>
  `# Written by muster-agent for a tenant with root.\n${loginUser} ALL=(ALL:ALL) NOPASSWD: ALL\n`;
