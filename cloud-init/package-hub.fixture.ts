import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import type { Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { UserDataInput } from "./input.ts";
import { type HostFolder, sampleInput, sampleValues } from "./part.fixture.ts";

export const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

export const listenOn = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
};

export const selfSigned = (folder: HostFolder): { key: string; cert: string } => {
  const [key, cert] = [folder.path("tls.key"), folder.path("tls.crt")];
  const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=hub".split(" ");
  const result = spawnSync("openssl", [
    ...request,
    "-addext",
    "subjectAltName=IP:127.0.0.1",
    "-keyout",
    key,
    "-out",
    cert,
  ]);
  if (result.status !== 0) throw new Error(result.stderr.toString());
  return { key: folder.read("tls.key"), cert: folder.read("tls.crt") };
};

/** The value `NO_ANSWER` in `answers` means that the test's server never answers the request. */
export const NO_ANSWER = 0;

export interface PackageHub {
  readonly server: Server;
  /** The `Authorization` header of each request that the test's hub received. */
  readonly seen: (string | undefined)[];
  readonly values: UserDataInput;
}

/**
 * Starts a test server that, like a hub, gives the agent's package to requests with the enrollment token. `answers` are the HTTP statuses of the test
 * server's first answers.
 */
export async function packageHub(folder: HostFolder, bytes: Buffer, answers: number[] = []): Promise<PackageHub> {
  const identity = selfSigned(folder);
  const { enrollmentToken, hub } = sampleValues();
  const seen: (string | undefined)[] = [];
  const server = createTlsServer(identity, (request, response) => {
    seen.push(request.headers.authorization);
    const allowed = request.headers.authorization === `Bearer ${enrollmentToken}`;
    const status = answers.shift() ?? (allowed ? 200 : 401);
    if (status !== NO_ANSWER) response.writeHead(status).end(allowed ? bytes : "");
  });
  const url = `https://127.0.0.1:${await listenOn(server)}`;
  const values = sampleInput({
    hub: { ...hub, agentUrl: url, caBundlePem: identity.cert },
    agent: { packageUrl: `${url}/agent/package`, packageSha256: sha256Of(bytes) },
  });
  return { server, seen, values };
}
