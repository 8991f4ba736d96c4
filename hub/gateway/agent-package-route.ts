import { createReadStream } from "node:fs";
import { basename } from "node:path";
import { Readable } from "node:stream";
import { ApiError } from "../../shared/api/errors.ts";
import type { Db } from "../db/tx.ts";
import type { AgentPackages } from "./agent-packages.ts";
import { requireToken } from "./bearer-token.ts";

export const PACKAGES_PATH = "/internal/v1/agent-packages";
export const agentPackageUrl = (agentUrl: string, sha256: string): string =>
  `${agentUrl.replace(/\/+$/, "")}${PACKAGES_PATH}/${sha256}`;

/** The agent's Debian package, for a host that has an enrollment token and nothing else yet. Using the token for this does not use it up. */
export async function sendAgentPackage(
  { db, packages }: { readonly db: Db; readonly packages: AgentPackages },
  bearer: string | null,
  sha256: string,
): Promise<Response> {
  await requireToken(db, bearer);
  const found = await packages.withSum(sha256);
  if (found === null)
    throw new ApiError(
      "not_found",
      "This hub has no agent package of that checksum. Put the package into the hub's agent package folder, or deploy the host again.",
    );
  const headers = {
    "content-type": "application/vnd.debian.binary-package",
    "content-length": String(found.bytes),
    "content-disposition": `attachment; filename="${basename(found.file)}"`,
  };
  return new Response(Readable.toWeb(createReadStream(found.file)) as ReadableStream, { headers });
}
