import { createHash } from "node:crypto";
import { createServer } from "node:http";

/** A web server with the site's own files, which hosts fetch at first boot. */
export interface FileServer {
  /** The paths that hosts have requested from the web server, in order. */
  readonly asked: string[];
  /** Serves a text as a file, and returns the reference by which a profile names the file. */
  serve(name: string, text: string): string;
  stop(): Promise<void>;
}

/** Starts the web server with the site's files. The argument `reach` is the address by which hosts reach the address `listen`. */
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
