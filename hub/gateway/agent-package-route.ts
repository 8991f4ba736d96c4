import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { basename } from "node:path";
import { Readable } from "node:stream";
import { ApiError } from "../../shared/api/errors.ts";
import type { Db } from "../db/tx.ts";
import type { AgentPackages } from "./agent-packages.ts";
import { requireToken } from "./bearer-token.ts";
import type { Guard } from "./guard.ts";

export const PACKAGES_PATH = "/internal/v1/agent-packages";
export const agentPackageUrl = (agentUrl: string, sha256: string): string =>
  `${agentUrl.replace(/\/+$/, "")}${PACKAGES_PATH}/${sha256}`;

export interface PackageSource {
  readonly db: Db;
  readonly guard: Guard;
  readonly packages: AgentPackages;
  /**
   * The time limit in milliseconds for one download of the agent package. Each download of an agent package occupies an open file and a socket of the
   * hub.
   */
  readonly packageWithinMs: number;
}

/**
 * Serves the agent's Debian package to a host that has only an enrollment token. The enrollment token stays valid after the download of the package.
 * The hub does not open the package file for a HEAD request, because the answer to HEAD has no body and nothing would close the file.
 */
export async function sendAgentPackage(
  { db, guard, packages, packageWithinMs }: PackageSource,
  outgoing: ServerResponse,
  bearer: string | null,
  sha256: string,
): Promise<Response> {
  const { token } = await requireToken(db, bearer);
  guard.asks(token.nodeId, "download");
  const found = await packages.withSum(sha256);
  if (found === null)
    throw new ApiError(
      "not_found",
      "This hub has no agent package with that checksum. Put the package into the hub's agent package folder, or deploy the host again.",
    );
  const headers = {
    "content-type": "application/vnd.debian.binary-package",
    "content-length": String(found.bytes),
    "content-disposition": `attachment; filename="${basename(found.file)}"`,
  };
  if (outgoing.req.method === "HEAD") return new Response(null, { headers });
  // Closing the connection of a download also closes the package file.
  const deadline = setTimeout(() => outgoing.destroy(), packageWithinMs).unref();
  outgoing.once("close", () => clearTimeout(deadline));
  return new Response(Readable.toWeb(createReadStream(found.file)) as ReadableStream, { headers });
}
