import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { validate } from "dockerfile-utils";
import { expect, it } from "vitest";
import { HUB } from "../../packaging/packages.ts";

const text = readFileSync(new URL("../../packaging/hub/Containerfile", import.meta.url), "utf8");

it("the container file has nothing for its linter to say", () => {
  expect(validate(text)).toEqual([]);
  // The linter does see faults.
  expect(validate(text.replace("USER muster", "USR muster"))).not.toEqual([]);
});

it.skipIf(!existsSync("/usr/bin/shellcheck"))("its commands have nothing for shellcheck to say", () => {
  const runs = [...text.matchAll(/^RUN ((?:.*\\\n)*.*)$/gm)].map(([, command]) => command ?? "");
  expect(runs.length).toBeGreaterThan(0);
  for (const input of runs) {
    const { status, stdout } = spawnSync("shellcheck", ["--shell=sh", "-"], { input, encoding: "utf8" });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  }
});

it("it takes the package that is built, and starts the command that the package brings", () => {
  expect(text).toContain(`COPY .muster/packages/${HUB.name}_*.deb`);
  const [, command = ""] = /^ENTRYPOINT \["\/usr\/bin\/([a-z-]+)"\]$/m.exec(text) ?? [];
  expect(Object.keys(HUB.commands)).toContain(command);
  expect(text).toContain(`/usr/lib/muster/${HUB.home}/runtime/node`);
});
