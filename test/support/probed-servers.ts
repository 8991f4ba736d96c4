/** Real servers on this machine that hosts with services, with other services or with faults would run. */
import { createServer as createHttp, type IncomingMessage } from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { KEY_ALGORITHM, SIGNING_ALGORITHM, x509 } from "../../hub/gateway/x509.ts";

export interface ProbedServers {
  /** Starts a server that does something with each connection, and returns its port. */
  tcp(use: (socket: Socket) => void): Promise<number>;
  /** Starts an SSH server as far as its banner. */
  ssh(banner?: string): Promise<number>;
  http(status: number, headers?: Record<string, string>): Promise<number>;
  /** Starts an HTTPS server with a certificate that no CA has signed. */
  https(): Promise<number>;
  /** The requests to the HTTP and HTTPS servers, the newest last. */
  readonly requests: IncomingMessage[];
  close(): void;
}

export function startProbedServers(): ProbedServers {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const requests: IncomingMessage[] = [];
  const listen = (server: Server): Promise<number> => {
    servers.push(server);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket.on("error", () => undefined).on("close", () => sockets.delete(socket)));
    });
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  };
  const tcp = (use: (socket: Socket) => void) => listen(createServer(use));
  return {
    requests,
    tcp,
    ssh: (banner = "SSH-2.0-OpenSSH_9.6p1 Ubuntu-3\r\n") => tcp((socket) => void socket.write(banner)),
    http: (status, headers = {}) =>
      listen(
        createHttp((request, response) => {
          requests.push(request);
          // The body never ends, so a client that waited for its end would wait for ever.
          response.writeHead(status, headers).write("x".repeat(65_536));
        }),
      ),
    https: async () => {
      const keys = await crypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
      const certificate = await x509.X509CertificateGenerator.createSelfSigned({
        name: "CN=host.example",
        notBefore: new Date(Date.now() - 60_000),
        notAfter: new Date(Date.now() + 86_400_000),
        signingAlgorithm: SIGNING_ALGORITHM,
        keys,
      });
      const der = Buffer.from(await crypto.subtle.exportKey("pkcs8", keys.privateKey));
      const key = `-----BEGIN PRIVATE KEY-----\n${der.toString("base64")}\n-----END PRIVATE KEY-----\n`;
      const server = createHttps({ cert: certificate.toString("pem"), key }, (request, response) => {
        requests.push(request);
        response.writeHead(200).end();
      });
      return listen(server.on("tlsClientError", () => undefined));
    },
    close: () => {
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
