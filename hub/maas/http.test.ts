import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { createLog } from "../../shared/log.ts";
import { Secret } from "../../shared/secret.ts";
import { createTransport, type RequestReport, type Transport, type TransportOptions } from "./http.ts";
import { RequestLimiter } from "./limiter.ts";
import { MaasError } from "./port.ts";

const KEY = "consumer:token:s3cretOfToken";
const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
});

async function region(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const transport = (baseUrl: string, more: Partial<TransportOptions> = {}): Transport =>
  createTransport({ baseUrl, apiKey: new Secret(KEY), ...more });
const failed = (promise: Promise<unknown>): Promise<MaasError> =>
  promise.then(
    () => Promise.reject(new Error("the call succeeded")),
    (error: unknown) => (error instanceof MaasError ? error : Promise.reject(error)),
  );
async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: string[] = [];
  for await (const part of request.setEncoding("utf8")) parts.push(String(part));
  return parts.join("");
}
const READ = { method: "GET", path: "machines/abc123/" } as const;
const POWER = { method: "POST", path: "machines/abc123/", op: "power_on", form: {}, slow: true } as const;
const SHORT = { quickMs: 200, slowMs: 200 };

describe("a request to MAAS", () => {
  it("carries the token to no metadata service, neither by address nor by a name that resolves to one", async () => {
    const heard: string[] = [];
    const url = await region((request, response) => {
      heard.push(request.url ?? "");
      response.end("{}");
    });
    const resolve = ((_name: string, _options: object, done: (error: null, found: object[]) => void) =>
      done(null, [{ address: "169.254.169.254", family: 4 }])) as unknown as NonNullable<TransportOptions["resolve"]>;
    for (const asked of [
      transport(url.replace("127.0.0.1", "region.example"), { resolve }),
      transport("http://169.254.169.254/MAAS"),
      transport("http://[64:ff9b::a9fe:a9fe]/MAAS"),
    ]) {
      const error = await failed(asked.json(READ, z.object({})));
      expect([error.code, error.message]).toEqual(["unreachable", expect.stringContaining("forbidden_address")]);
    }
    expect(heard).toEqual([]);
  });

  it("is a form with its own authorization header, and is reported under a name without ids", async () => {
    const seen: { url: string | undefined; nonce: string | undefined; body: string; type: string | undefined }[] = [];
    const url = await region(async (request, response) => {
      const { authorization, "content-type": type } = request.headers;
      const nonce = /oauth_nonce="(\w+)"/.exec(authorization ?? "")?.[1];
      seen.push({ url: request.url, nonce, body: await bodyOf(request), type });
      response.end("{}");
    });
    const reports: RequestReport[] = [];
    const http = transport(url, { onRequest: (report) => reports.push(report) });
    const form = { user_data: new Secret("a+b/c=="), enable_hw_sync: false, tags: ["x", "y"] };
    await http.json({ method: "POST", path: "machines/abc123/", op: "deploy", form }, z.object({}));
    await http.json({ method: "GET", path: "machines/", query: { id: ["a", "b"] } }, z.object({}));
    expect(seen[0]).toMatchObject({
      url: "/MAAS/api/2.0/machines/abc123/?op=deploy",
      body: "user_data=a%2Bb%2Fc%3D%3D&enable_hw_sync=false&tags=x&tags=y",
      type: "application/x-www-form-urlencoded",
    });
    expect(seen[1]).toMatchObject({ url: "/MAAS/api/2.0/machines/?id=a&id=b", body: "", type: undefined });
    expect(new Set(seen.map(({ nonce }) => nonce)).size).toBe(2);
    expect(reports.map(({ operation, outcome }) => [operation, outcome])).toEqual([
      ["POST machines/{id}/?op=deploy", "ok"],
      ["GET machines/", "ok"],
    ]);
  });

  it("follows no redirect, so that the token goes to no other address", async () => {
    let followed = 0;
    const elsewhere = await region((_, response) => {
      followed += 1;
      response.end("{}");
    });
    const url = await region((_, response) => void response.writeHead(301, { location: elsewhere }).end());
    expect(await failed(transport(url).json(READ, z.object({})))).toMatchObject({
      code: "bad_answer",
      httpStatus: 301,
    });
    expect(followed).toBe(0);
  });

  it("needs a token of three parts, and sends nothing without one", async () => {
    let asked = 0;
    const url = await region((_, response) => {
      asked += 1;
      response.end("{}");
    });
    const error = await failed(transport(url, { apiKey: new Secret("a:b") }).text(READ));
    expect([error.code, asked]).toEqual(["unauthorized", 0]);
  });

  it("treats a page, a truncated document and a wrong shape as bad_answer, and reports that", async () => {
    const bodies = ["<html>", '[{"a":', '{"state":7}'];
    const url = await region((_, response) => void response.end(bodies.shift()));
    const outcomes: string[] = [];
    const http = transport(url, { onRequest: ({ outcome }) => outcomes.push(outcome) });
    const shape = z.object({ state: z.string() });
    for (const request of [READ, READ, POWER]) {
      const error = await failed(http.json(request, shape));
      expect(error).toMatchObject({ code: "bad_answer", outcomeUnknown: request.method === "POST" });
    }
    expect(outcomes).toEqual(["bad_answer", "bad_answer", "bad_answer"]);
  });
});

describe("a request without an answer", () => {
  it("times out, and has an unknown outcome if it would change something", async () => {
    const url = await region(() => undefined);
    const http = transport(url, { timeouts: SHORT });
    expect(await failed(http.text(POWER))).toMatchObject({ code: "timeout", outcomeUnknown: true });
    expect(await failed(http.text(READ))).toMatchObject({ code: "timeout", outcomeUnknown: false });
  });

  it("also times out if the answer begins and never ends", async () => {
    const url = await region((_, response) => void response.write("{"));
    const error = await failed(transport(url, { timeouts: SHORT }).text(POWER));
    expect(error).toMatchObject({ code: "timeout", outcomeUnknown: true });
  });

  it("has changed nothing if the connection was refused", async () => {
    const probe = createTcpServer();
    await new Promise<void>((done) => probe.listen(0, "127.0.0.1", done));
    const { port } = probe.address() as AddressInfo;
    await new Promise((done) => probe.close(done));
    const error = await failed(transport(`http://127.0.0.1:${port}`).text(POWER));
    expect(error).toMatchObject({ code: "unreachable", outcomeUnknown: false });
    expect(error.message).toContain("ECONNREFUSED");
  });

  it("has changed nothing if the name cannot be resolved or TLS fails", async () => {
    const plain = (await region((_, response) => void response.end("{}"))).replace("http:", "https:");
    for (const url of ["http://no-such-host.invalid", plain])
      expect(await failed(transport(url).text(POWER))).toMatchObject({ code: "unreachable", outcomeUnknown: false });
  });

  it("may have changed something if the connection broke after the request", async () => {
    const before = await region((request) => request.socket.destroy());
    const within = await region((request, response) => response.write("{", () => request.socket.destroy()));
    for (const url of [before, within])
      expect(await failed(transport(url).text(POWER))).toMatchObject({ code: "unreachable", outcomeUnknown: true });
  });

  it("throws a MaasError if the caller cancels it, running or waiting", async () => {
    const stop = new AbortController();
    const limiter = new RequestLimiter({ total: 1, slow: 1 });
    const url = await region(() => stop.abort());
    const http = transport(url, { signal: stop.signal, limiter });
    const [underWay, inLine] = await Promise.all([failed(http.text(POWER)), failed(http.text(POWER))]);
    expect(underWay).toMatchObject({ code: "unreachable", outcomeUnknown: true });
    expect(inLine).toMatchObject({ code: "unreachable", outcomeUnknown: false });
  });
});

describe("secrets", () => {
  it("appear in no error, field or log line, whatever MAAS repeats", async () => {
    let status = 400;
    const url = await region(async (request, response) => {
      const echo = `${request.headers.authorization} ${decodeURIComponent(await bodyOf(request))} base string: &s3cretOfToken`;
      response.writeHead(status).end(status === 400 ? JSON.stringify({ power_pass: [echo], [echo]: ["x"] }) : echo);
    });
    const lines: string[] = [];
    const log = createLog("debug", (line) => lines.push(line));
    const http = transport(url, { onRequest: (report) => log.debug("maas request", { ...report }) });
    const form = { power_parameters_power_pass: new Secret("calvin77") };
    for (status of [400, 401, 403, 404, 409, 418, 500, 503]) {
      const error = await failed(http.text({ method: "PUT", path: "machines/abc123/", form }));
      log.warn("it failed", { error });
      lines.push(JSON.stringify(error), String(error.stack), String(error));
    }
    expect(lines.join("\n")).toContain("it failed");
    expect(lines.join("\n")).not.toMatch(/s3cretOfToken|calvin77/);
  });
});
