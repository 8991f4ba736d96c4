import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { validate } from "dockerfile-utils";
import { execa } from "execa";
import { expect, it } from "vitest";
import { HUB } from "../../packaging/packages.ts";
import { TestAuthority } from "../fakes/hub/authority.ts";

const text = readFileSync(new URL("../../packaging/hub/Containerfile", import.meta.url), "utf8");

it("the container file passes its linter", () => {
  expect(validate(text)).toEqual([]);
  // The linter of container files must refuse a container file with a fault.
  expect(validate(text.replace("USER muster", "USR muster"))).not.toEqual([]);
});

it.skipIf(!existsSync("/usr/bin/shellcheck"))("the container file's commands pass shellcheck", () => {
  const runs = [...text.matchAll(/^RUN ((?:.*\\\n)*.*)$/gm)].map(([, command]) => command ?? "");
  expect(runs.length).toBeGreaterThan(0);
  for (const input of runs) {
    const { status, stdout } = spawnSync("shellcheck", ["--shell=sh", "-"], { input, encoding: "utf8" });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  }
});

it("the container's health check succeeds while the hub answers, and fails otherwise", async () => {
  const [, program = ""] = /CMD \["[^"]*", "-e", "(.*)"\]$/m.exec(text) ?? [];
  const answer = (_: unknown, response: ServerResponse): void => void response.writeHead(status).end();
  let status = 200;
  const { key, cert } = await (await TestAuthority.make()).server();
  const check = async (server: Server, env: Record<string, string>) => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const port = String((server.address() as AddressInfo).port);
    const run = () =>
      execa(process.execPath, ["-e", program], { env: { ...env, MUSTER_HTTP_PORT: port }, reject: false });
    const well = await run();
    status = 503;
    const ill = await run();
    status = 200;
    await new Promise((resolve) => server.close(resolve));
    return [well.exitCode, ill.exitCode, (await run()).exitCode];
  };
  expect(await check(createServer(answer), {})).toEqual([0, 1, 1]);
  expect(await check(createTlsServer({ key, cert }, answer), { MUSTER_HTTP_TLS_CERT: "/c" })).toEqual([0, 1, 1]);
});

it("the container file installs the built package and starts the package's command", () => {
  expect(text).toContain(`COPY .muster/packages/${HUB.name}_*.deb`);
  const [, command = ""] = /^ENTRYPOINT \["\/usr\/bin\/([a-z-]+)"\]$/m.exec(text) ?? [];
  expect(Object.keys(HUB.commands)).toContain(command);
  expect(text).toContain(`/usr/lib/muster/${HUB.home}/runtime/node`);
});
