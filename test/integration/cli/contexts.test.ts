/** Types the commands of contexts against two hubs, each with a login of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ApiHarness, seedApi, startApi } from "../../support/api-harness.ts";
import { commandLine } from "../../support/command-line.ts";
import { musterHere } from "../../support/muster-here.ts";

let hubs: readonly ApiHarness[];
let urls: readonly string[];
let home: string;
let env: Record<string, string>;
let muster: ReturnType<typeof musterHere>;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "muster-context-"));
  hubs = [await startApi(), await startApi()];
  urls = await Promise.all(hubs.map((hub) => hub.listen()));
  for (const [index, hub] of hubs.entries()) await seedApi(hub, ["east", "west"][index]);
  env = { HOME: home };
  muster = musterHere(env);
});
afterAll(async () => {
  rmSync(home, { recursive: true, force: true });
  for (const hub of hubs) await hub.close();
});

it("a context is added, used, shown and removed, and each has a login of its own", async () => {
  expect(await muster("context list")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("There are no contexts."),
  });
  for (const [index, name] of ["east", "west"].entries())
    expect(await muster(["context", "add", name, "--url", `${urls[index]}/`])).toMatchObject({ status: 0, stderr: "" });
  expect(await muster("context add bad/name --url http://x.example")).toMatchObject({ status: 2 });
  expect(await muster("context add bad --url ftp://x.example")).toMatchObject({ status: 2 });
  expect(await muster("get sites")).toMatchObject({
    status: 4,
    stderr: expect.stringContaining("Run: muster login --context east"),
  });

  const [east, west] = hubs;
  if (east === undefined || west === undefined) throw new Error("two hubs");
  const typed = commandLine({ api: east, url: "", cwd: home });
  const bare = { HOME: home, MUSTER_URL: "", XDG_STATE_HOME: "", XDG_CONFIG_HOME: "" };
  for (const [name, hub] of [
    ["east", east],
    ["west", west],
  ] as const) {
    const login = await typed(
      ["login", "--with-token", "--context", name],
      { ...bare, MUSTER_TOKEN: "" },
      `${hub.admin}\n`,
    );
    expect(login).toMatchObject({ exitCode: 0, stderr: "" });
  }
  expect((await muster("get sites -o name")).stdout).toBe("site/east\n");
  expect((await muster("get sites -o name --context west")).stdout).toBe("site/west\n");
  expect(await muster("context use west")).toMatchObject({ status: 0, stdout: "west is the current context.\n" });
  expect((await muster("get sites -o name")).stdout).toBe("site/west\n");

  const list = await muster("context list");
  expect(list.stdout).toMatch(/^ {3}east +http\S+ +login \(token\)\n\* {2}west +http\S+ +login \(token\)$/m);
  const shown = await muster("context show");
  expect(shown.stdout).toMatch(
    /^context +west +\S*contexts\.json\nhub +http:\S+ +context west\nCA file +- +-\ntoken +login \(token\) +context west$/m,
  );
  const other = await musterHere({ ...env, MUSTER_TOKEN: "hunter2" })("context show --context east");
  expect(other.stdout).toMatch(/^context +east +--context\n[\s\S]*^token +in the environment +MUSTER_TOKEN$/m);
  expect(other.stdout).not.toContain("hunter2");

  // Another address gets no login, even if its context has the name of a known hub.
  const elsewhere = join(home, "other.json");
  const renamed = musterHere({ ...env, MUSTER_CONFIG: elsewhere });
  await renamed(["context", "add", "west", "--url", urls[0] ?? ""]);
  expect(await renamed("get sites")).toMatchObject({
    status: 4,
    stderr: expect.stringContaining("login --context west"),
  });
  expect((await renamed("context show")).stdout).toMatch(/^token +none +default$/m);
  await muster(["context", "add", "east", "--url", urls[1] ?? ""]);
  expect(await muster("get sites --context east"), "the login was for the old address").toMatchObject({ status: 4 });
  await muster(["context", "add", "east", "--url", urls[0] ?? ""]);
  expect(await muster("get sites --context east"), "the old login is removed").toMatchObject({ status: 4 });

  expect(await muster("context remove west")).toMatchObject({ status: 0 });
  expect(await muster("context use west")).toMatchObject({ status: 5 });
  await muster(["context", "add", "west", "--url", urls[1] ?? "", "--use"]);
  expect(await muster("get sites"), "the login is gone with the context").toMatchObject({ status: 4 });
});
