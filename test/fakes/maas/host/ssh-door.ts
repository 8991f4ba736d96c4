import { createServer, type Server } from "node:net";

/**
 * Greets callers at port 22 of a host's address as an SSH server does, for as long as the host is up. Nobody can log in. The computer of the simulator
 * must have the address.
 */
export class SshDoor {
  readonly #server: Server;

  constructor(address: string) {
    this.#server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.end("SSH-2.0-Simulated\r\n");
    });
    this.#server.on("error", (error) => process.stderr.write(`No SSH at ${address}: ${error.message}\n`));
    this.#server.listen(22, address);
  }

  close(): void {
    this.#server.close();
  }
}
