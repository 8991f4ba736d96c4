import type { AdoptionCommands } from "../../shared/api/adoptions.ts";

const GROUP = "muster_adoption";

/**
 * Writes commands as an inventory of Ansible in YAML. Each text of the inventory is a JSON string, which YAML reads as a quoted text, so that no
 * host's name or address can add a line or a key. The tag `!unsafe` keeps Ansible from reading a text as a template.
 */
export function ansibleInventory({ commands, expires_at: expiresAt, left_out: leftOut }: AdoptionCommands): string {
  const lines = commands.flatMap((one) => [
    `        ${JSON.stringify(one.hostname)}:`,
    ...(one.host === null ? [] : [`          ansible_host: !unsafe ${JSON.stringify(one.host)}`]),
    `          muster_node_id: ${JSON.stringify(one.node_id)}`,
    `          muster_bootstrap_command: !unsafe ${JSON.stringify(one.bootstrap_command)}`,
  ]);
  return [
    "# Each command fits one host and is valid once. Whoever reads this file can enroll these hosts, so delete it after use.",
    `# The commands expire at ${expiresAt}. Nodes without a command, because their machines are not Deployed: ${leftOut}.`,
    "all:",
    "  children:",
    `    ${GROUP}:`,
    ...(lines.length === 0 ? ["      hosts: {}"] : ["      hosts:", ...lines]),
    "",
  ].join("\n");
}
