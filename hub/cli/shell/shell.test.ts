import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { musterHere } from "../../../test/support/muster-here.ts";

const muster = musterHere({ MUSTER_URL: "http://127.0.0.1:1" });
const isThere = async (program: string): Promise<boolean> =>
  (await execa(program, ["--version"], { reject: false })).exitCode === 0;
const [BASH, ZSH, FISH, GROFF] = await Promise.all(["bash", "zsh", "fish", "groff"].map(isThere));
for (const [name, there] of Object.entries({ bash: BASH, zsh: ZSH, fish: FISH, groff: GROFF }))
  if (!there) process.stderr.write(`SKIPPED: ${name} is not installed, so no test runs it\n`);

let folder: string;
const written: Record<string, string> = {};
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "muster-shell-"));
  for (const shell of ["bash", "zsh", "fish"]) {
    const { status, stdout } = await muster(["completion", shell]);
    expect(status).toBe(0);
    written[shell] = join(folder, `completion.${shell}`);
    writeFileSync(written[shell], stdout);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What bash offers for the last word of a command line. */
async function offered(...lines: string[]): Promise<string[][]> {
  const ask = lines.map((line) => {
    const words = line.split(" ").map((word) => `'${word}'`);
    return `COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; _muster; echo "\${COMPREPLY[*]}"`;
  });
  const { stdout } = await execa("bash", ["--norc", "-uc", `source "${written["bash"]}"; ${ask.join("; ")}`]);
  return stdout.split("\n").map((line) => line.split(" ").filter((word) => word !== ""));
}

describe.skipIf(!BASH)("the completion of bash", () => {
  it("offers verbs, nouns with their short forms, flags and the values of flags", async () => {
    const [verbs, nouns, flags, short, forms, color, after] = await offered(
      "muster c",
      "muster get no",
      "muster get nodes --hostname",
      "muster get no --hostname",
      "muster get nodes -o j",
      "muster get nodes --status active --color a",
      "muster wait node --timeout 5m --fo",
    );
    expect(verbs).toEqual(["cordon", "cancel", "context", "completion"]);
    expect(nouns).toEqual(["nodes", "node", "no"]);
    expect(flags).toEqual(["--hostname", "--hostname-prefix"]);
    expect(short).toEqual(flags);
    expect(forms).toEqual(["json", "jsonl"]);
    expect(color).toEqual(["auto", "always"]);
    expect(after).toEqual(["--for"]);
  });

  it("offers files for a flag that takes a file, and the commands of operations after their first dash", async () => {
    const [files, operations, none] = await offered(
      `muster get nodes --ca-file ${folder}/completion.b`,
      "muster list-nod",
      "muster list",
    );
    expect(files).toEqual([`${folder}/completion.bash`]);
    expect(operations).toEqual(["list-nodes", "list-node-tasks"]);
    expect(none).toEqual([]);
  });
});

describe("the completion of other shells", () => {
  it.skipIf(!ZSH)("is valid for zsh", async () => {
    expect(await execa("zsh", ["-n", written["zsh"] ?? ""], { reject: false })).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
  });

  it.skipIf(!FISH)("is valid for fish, and offers what bash offers", async () => {
    const ask = `source ${written["fish"]}; complete -C "muster get no"`;
    const { exitCode, stdout } = await execa("fish", ["--no-config", "-c", ask], { reject: false });
    expect(exitCode).toBe(0);
    expect(stdout.split("\n").map((line) => line.split("\t")[0])).toEqual(
      expect.arrayContaining(["nodes", "node", "no"]),
    );
  });
});

describe("the man page", () => {
  it("has the parts of a man page and each command, with no line that roff would misread", async () => {
    const { status, stdout } = await muster("man");
    expect(status).toBe(0);
    expect([...stdout.matchAll(/^\.SH (.*)$/gm)].map(([, name]) => name)).toEqual([
      "NAME",
      "SYNOPSIS",
      "DESCRIPTION",
      "COMMANDS",
      "EXIT STATUS",
      "ENVIRONMENT",
      "FILES",
    ]);
    for (const command of ["get nodes", "wait onboardings", "roce import", "context add", "login"])
      expect(stdout).toContain(`.SS "muster ${command}"`);
    expect(stdout.split("\n").filter((line) => /^[.']/.test(line) && !/^\.(TH|SH|SS|TP|B|I|PP)\b/.test(line))).toEqual(
      [],
    );
  });

  it.skipIf(!GROFF)("is formatted by man without a warning", async () => {
    const page = join(folder, "muster.1");
    writeFileSync(page, (await muster("man")).stdout);
    const { stderr, stdout } = await execa("man", ["--warnings", "-E", "UTF-8", "-l", page], {
      env: { MANWIDTH: "100", MANROFFSEQ: "" },
      reject: false,
    });
    expect(stderr).toBe("");
    expect(stdout).toMatch(/muster get nodes/);
  });
});
