import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import type { Db } from "../db/tx.ts";
import { requireToken } from "./bearer-token.ts";

export const BOOTSTRAP_SCRIPT_PATH = "/internal/v1/bootstrap-script";

export type RenderBootstrapScript = (host: {
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly token: Secret;
}) => Promise<string>;

/** The script of manual mode, for whoever has a token that is good and that no host has used. */
export async function sendBootstrapScript(
  { db, bootstrapScript }: { readonly db: Db; readonly bootstrapScript: RenderBootstrapScript },
  bearer: string | null,
): Promise<Response> {
  const { text, token } = await requireToken(db, bearer);
  if (token.usedAt !== null)
    throw new ApiError(
      "token_used",
      "A host has enrolled with this token already. Ask an operator for a new bootstrap command where this is another host.",
    );
  const script = await bootstrapScript({
    nodeId: token.nodeId,
    generation: token.generation,
    token: new Secret(text),
  });
  return new Response(script, { headers: { "content-type": "text/x-shellscript", "cache-control": "no-store" } });
}
