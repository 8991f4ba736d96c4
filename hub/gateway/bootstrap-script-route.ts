import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import type { Db } from "../db/tx.ts";
import { requireToken } from "./bearer-token.ts";
import type { Guard } from "./guard.ts";

export const BOOTSTRAP_SCRIPT_PATH = "/internal/v1/bootstrap-script";

/**
 * The bootstrap command is one line, which a person runs in a root shell on the host. The bootstrap command contains the hub's CA, so that an
 * attacker on the network cannot replace the bootstrap script. In the bootstrap command the shell's own `printf` writes the token into pipes, because
 * every user can see the arguments of a process.
 */
export function bootstrapCommand(agentUrl: string, caBundlePem: string, token: Secret): string {
  const file = "/root/muster-bootstrap.sh";
  const url = `${agentUrl.replace(/\/+$/, "")}${BOOTSTRAP_SCRIPT_PATH}`;
  const ca = `<(base64 -d <<<${Buffer.from(caBundlePem).toString("base64")})`;
  const header = `@<(printf "Authorization: Bearer %s" ${token.reveal()})`;
  const steps = [
    "umask 077",
    'command -v curl >/dev/null || { echo "muster: curl is not installed; run apt-get install -y curl, then this again" >&2; exit 1; }',
    `rm -f ${file}`,
    // With `--fail-with-body`, curl writes the hub's reason for a refusal to the bootstrap script's file, and the bootstrap command shows this
    // reason. The bootstrap script runs from a file, because the script must not read from the pipe from which the shell reads the bootstrap command.
    `if curl -sS --fail-with-body --cacert ${ca} -H ${header} -o ${file} ${url}; then bash ${file} </dev/null; else cat ${file} >&2 2>/dev/null; exit 1; fi`,
  ];
  return `printf %s '${steps.join("; ")}' | bash`;
}

export type RenderBootstrapScript = (host: {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly token: Secret;
}) => Promise<string>;

/** Sends the bootstrap script, which a person runs on a host by hand, to a client whose token is valid and unused. */
export async function sendBootstrapScript(
  {
    db,
    guard,
    bootstrapScript,
  }: { readonly db: Db; readonly guard: Guard; readonly bootstrapScript: RenderBootstrapScript },
  bearer: string | null,
): Promise<Response> {
  const { text, token } = await requireToken(db, bearer);
  guard.asks(token.nodeId, "download");
  if (token.usedAt !== null)
    throw new ApiError(
      "token_used",
      "A host has already enrolled with this token. If this is another host, ask an operator for a new bootstrap command.",
    );
  const script = await bootstrapScript({
    nodeId: token.nodeId,
    generation: token.generation,
    token: new Secret(text),
  });
  return new Response(script, { headers: { "content-type": "text/x-shellscript", "cache-control": "no-store" } });
}
