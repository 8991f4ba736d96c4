import { z } from "zod";
import { UserDataInput } from "./input.ts";
import { AGENT_BODY, agentValues } from "./parts/agent-bootstrap.ts";
import { partFile, shellScript } from "./parts/part.ts";

const BootstrapInput = UserDataInput.pick({ nodeId: true, generation: true, hub: true, enrollmentToken: true }).extend({
  /** Manual mode needs the agent's Debian packages, one for each of Debian's names of an architecture. */
  packages: z.record(
    z.string().regex(/^[a-z0-9]+$/),
    z.strictObject({ url: z.url({ protocol: /^https$/ }), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
  /** The time at which the hub rendered the script for manual mode, in seconds since 1970 by the hub's clock. */
  renderedAt: z.int().min(0),
});
export type BootstrapInput = z.input<typeof BootstrapInput>;

const ONLY_ROOT = `if [ -z "\${MUSTER_ROOT:-}" ] && [ "$(id -u)" -ne 0 ]; then
  echo 'muster: run this as root: it installs a package and a service' >&2
  exit 1
fi
`;

/**
 * In manual mode (lifecycle 2.1), a person runs this bootstrap script on the host to install the agent. The script for manual mode contains the
 * bootstrap part that installs the agent on a host. The script for manual mode first checks the host, and says why the agent could not work there.
 * After the installation, the script for manual mode waits for the agent's enrollment. `composeBootstrapScript` throws when a value is invalid.
 */
export function composeBootstrapScript(values: BootstrapInput): string {
  const input = BootstrapInput.parse(values);
  const packages = Object.entries(input.packages).map(([name, { url, sha256 }]) => `${name} ${url} ${sha256}`);
  return shellScript({
    name: "20-agent-bootstrap",
    owner: "muster",
    values: {
      ...agentValues(input),
      PACKAGE_FROM_HUB: true,
      PACKAGES: packages.join("\n"),
      RENDERED_AT: input.renderedAt,
    },
    before: ONLY_ROOT,
    body: [partFile("manual-preflight.sh"), AGENT_BODY, partFile("manual-epilogue.sh")].join("\n"),
  });
}
