import { createHash } from "node:crypto";
import { createServer } from "node:http";

export interface FileServer {
  /** The paths that hosts have requested from the web server with the site's files, in order. */
  readonly asked: string[];
  serve(name: string, text: string): string;
  stop(): Promise<void>;
}

/** Starts a web server at the address `listen`, which hosts reach by the address `reach`. */
export async function startFileServer(listen: string, reach: string): Promise<FileServer> {
  const served = new Map<string, string>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    asked.push(path);
    const body = served.get(path);
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, listen, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the file server has no port");
  return {
    asked,
    serve(name, text) {
      served.set(`/${name}`, text);
      const sha256 = createHash("sha256").update(text).digest("hex");
      return `http://${reach}:${address.port}/${name}#sha256=${sha256}`;
    },
    stop: () => new Promise((resolve) => void server.close(() => resolve())),
  };
}
