import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { execa } from "execa";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ARCHITECTURES } from "../../packaging/package-spec.ts";
import { AGENT, HUB, PACKAGES } from "../../packaging/packages.ts";
import { signPackages } from "../../packaging/sign.ts";
import { startChild } from "../support/child.ts";
import { newHubFolder } from "../support/hub-state.ts";
import { until } from "../support/until.ts";

/** Builds Muster's Debian packages, unpacks them into an empty folder and runs their programs. */
const REPOSITORY = new URL("../..", import.meta.url).pathname;
const architecture = process.arch === "arm64" ? "arm64" : "amd64";
const here = existsSync("/usr/bin/dpkg-deb");
let folder: string;

const build = (out: string, ...more: string[]) =>
  execa(
    process.execPath,
    [
      ...["--disable-warning=ExperimentalWarning", "packaging/main.ts", "--out", join(folder, out)],
      ...["--compress", "zstd", "--signing-key", join(folder, "key.pem"), ...more],
    ],
    { cwd: REPOSITORY, reject: false },
  );
const unpacked = (name: string, path = "") => join(folder, `root-${name}`, path);
const filesBelow = async (folder: string) =>
  (await readdir(folder, { recursive: true })).map((name) => join(folder, name));
const sourceOf = (home: string, script: string) => join(REPOSITORY, relative(home, script)).replace(/[.]js$/, ".ts");
const homeOf = (spec: typeof AGENT) => unpacked(spec.name, `usr/lib/muster/${spec.home}`);

describe.skipIf(!here)("the Debian packages (SKIPPED without dpkg-deb)", () => {
  beforeAll(async () => {
    folder = newHubFolder("muster-packages-", tmpdir());
    expect(await build("a")).toMatchObject({ exitCode: 0, stderr: "" });
    for (const { name } of PACKAGES) {
      const { stdout } = await execa("sh", ["-c", `ls ${join(folder, "a")}/${name}_*.deb`]);
      await execa("dpkg-deb", ["-R", stdout, unpacked(name)]);
    }
  }, 240_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("have the same bytes when they are built again", async () => {
    expect(await build("b", "--only", AGENT.name)).toMatchObject({ exitCode: 0 });
    const sums = (out: string) => readFileSync(join(folder, out, "SHA256SUMS"), "utf8");
    expect(sums("a").split("\n")).toEqual(expect.arrayContaining(sums("b").trim().split("\n")));
  });

  it.each(PACKAGES)("$name has a complete bill of materials, beside the package and inside it", async ({ name }) => {
    const [beside = ""] = (await readdir(join(folder, "a"))).filter(
      (one) => one.startsWith(`${name}_`) && one.endsWith(".cdx.json"),
    );
    const text = readFileSync(join(folder, "a", beside), "utf8");
    expect(readFileSync(unpacked(name, `usr/share/doc/${name}/sbom.cdx.json`), "utf8")).toBe(text);
    const sbom = JSON.parse(text) as {
      components: { name: string; version: string; "bom-ref": string; licenses?: unknown }[];
    };
    expect(sbom).toMatchObject({ bomFormat: "CycloneDX", specVersion: "1.6", metadata: { component: { name } } });
    const spec = PACKAGES.find((one) => one.name === name) ?? expect.fail(name);
    const brought = (await readdir(homeOf(spec), { recursive: true }))
      .filter((path) => /(^|\/)node_modules\/(@[^/]+\/)?[^/@]+\/package[.]json$/.test(path))
      .map((path) => JSON.parse(readFileSync(join(homeOf(spec), path), "utf8")) as { name: string; version: string })
      .map((one) => `${one.name}@${one.version}`);
    const told = sbom.components.filter((one) => one["bom-ref"].startsWith("node_modules/"));
    const licences =
      spec.console === null ? "[]" : readFileSync(join(homeOf(spec), spec.console, "licenses.json"), "utf8");
    const bundled = (JSON.parse(licences) as { name: string; version: string }[]).map(
      (one) => `${one.name}@${one.version}`,
    );
    expect(bundled.some((one) => one.startsWith("react-dom@"))).toBe(spec.console !== null);
    const runtime = `node-linux-${ARCHITECTURES[architecture]}@${process.version.slice(1)}`;
    expect(told.map((one) => `${one.name}@${one.version}`).sort()).toEqual(
      [...new Set([...brought, ...bundled, runtime])].sort(),
    );
    expect(told.filter((one) => one.licenses === undefined)).toEqual([]);
    expect(readFileSync(join(folder, "a/SHA256SUMS"), "utf8")).toContain(beside);
  });

  it("are identified by their key's fingerprint, and are no release until the fingerprint is committed", async () => {
    const { stdout } = await execa(
      "bash",
      ["-c", "openssl pkey -pubin -in muster-release.pub.pem -outform DER | sha256sum"],
      {
        cwd: join(folder, "a"),
      },
    );
    const [fingerprint = ""] = stdout.split(" ");
    const { fingerprint: told } = await signPackages(join(folder, "a"), join(folder, "key.pem"));
    expect(told).toBe(fingerprint);
    for (const { name } of PACKAGES)
      expect(readFileSync(unpacked(name, `usr/share/doc/${name}/release-keys.txt`), "utf8")).not.toContain(fingerprint);
    const released = await build("released", "--only", AGENT.name, "--release");
    expect(released).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(fingerprint) });
  });

  it("have units that write no core dump, limit their memory, and block no device", () => {
    const unitOf = (name: string) => readFileSync(unpacked(name, `usr/lib/systemd/system/${name}.service`), "utf8");
    for (const { name } of PACKAGES) expect(unitOf(name)).toMatch(/^LimitCORE=0$(.|\n)*^MemoryMax=/m);
    // In systemd up to version 250, the setting ProtectClock also restricts access to devices.
    expect(unitOf(AGENT.name)).not.toMatch(/^(ProtectClock|PrivateDevices|DevicePolicy|DeviceAllow)=/m);
  });

  it("have checksums for every package in the folder, also for one of an earlier build", async () => {
    const earlier = "muster-agent_0.0.1_riscv64.deb";
    mkdirSync(join(folder, "mixed"));
    writeFileSync(join(folder, "mixed", earlier), "earlier");
    await signPackages(join(folder, "mixed"), join(folder, "mixed-key.pem"));
    const sum = createHash("sha256").update("earlier").digest("hex");
    expect(readFileSync(join(folder, "mixed/SHA256SUMS"), "utf8")).toBe(`${sum}  ${earlier}\n`);
  });

  it("have checksums and a signature that OpenSSL accepts, and that a changed byte breaks", async () => {
    const out = join(folder, "a");
    const verify = () =>
      execa(
        "openssl",
        ["pkeyutl", "-verify", "-pubin", "-inkey", "muster-release.pub.pem", "-rawin", "-in", "SHA256SUMS"].concat(
          "-sigfile",
          "SHA256SUMS.sig",
        ),
        { cwd: out, reject: false },
      );
    expect(await verify()).toMatchObject({ exitCode: 0 });
    const text = readFileSync(join(out, "SHA256SUMS"), "utf8");
    for (const line of text.trim().split("\n")) {
      const [sum, file] = line.split("  ") as [string, string];
      expect(
        createHash("sha256")
          .update(readFileSync(join(out, file)))
          .digest("hex"),
      ).toBe(sum);
    }
    writeFileSync(
      join(out, "SHA256SUMS"),
      text.replace(/^./, (first) => (first === "0" ? "1" : "0")),
    );
    expect((await verify()).exitCode).not.toBe(0);
    writeFileSync(join(out, "SHA256SUMS"), text);
    expect(statSync(join(folder, "key.pem")).mode & 0o777).toBe(0o600);
  });

  it.each(PACKAGES)("$name contains no test and no secret, and only root's files", async (spec) => {
    const { stdout } = await execa("sh", ["-c", `dpkg-deb -c ${join(folder, "a")}/${spec.name}_*.deb`]);
    const lines = stdout.split("\n");
    expect(lines.length).toBeGreaterThan(100);
    for (const line of lines) {
      expect(line).toMatch(/^[dl-]rw[xr-]?[-rwx]{6} root\/root /);
      expect(line).not.toMatch(/[.](test|fixture)[.]ts$/);
    }
    const control = readFileSync(unpacked(spec.name, "DEBIAN/control"), "utf8");
    expect(control).toContain(`Package: ${spec.name}\n`);
    expect(control).toContain(`Architecture: ${architecture}\n`);
    expect(await execa("md5sum", ["-c", "--quiet", "DEBIAN/md5sums"], { cwd: unpacked(spec.name) })).toMatchObject({
      exitCode: 0,
    });
  });

  it.each(PACKAGES)("$name contains its sources without types, with unchanged line numbers", async (spec) => {
    const home = homeOf(spec);
    const files = (await Promise.all(spec.sources.map((one) => filesBelow(join(home, one))))).flat();
    expect(files.filter((file) => file.endsWith(".ts"))).toEqual([]);
    const scripts = files.filter((file) => file.endsWith(".js") && existsSync(sourceOf(home, file)));
    expect(scripts.length).toBeGreaterThan(40);
    for (const file of scripts) {
      const [script, source] = [readFileSync(file, "utf8"), readFileSync(sourceOf(home, file), "utf8")];
      expect(script.split("\n").map((line) => line.length)).toEqual(source.split("\n").map((line) => line.length));
      for (const { fileName } of ts.preProcessFile(script).importedFiles.filter((one) => one.fileName.startsWith(".")))
        expect(existsSync(join(dirname(file), fileName)), `${fileName} in ${file}`).toBe(true);
    }
  });

  it("contains an agent that runs on its own runtime, and names a missing configuration file", async () => {
    const home = homeOf(AGENT);
    const run = await execa(join(home, "runtime/node"), [join(home, "agent/main.js"), "--config", "/none.json"], {
      env: { PATH: "/nonexistent", MUSTER_ROOT: folder },
      extendEnv: false,
      cwd: "/",
      reject: false,
    });
    expect(run.exitCode).toBe(78);
    expect(run.stderr + run.stdout).toContain("none.json cannot be read");
    expect(readFileSync(unpacked(AGENT.name, "usr/bin/muster-agent"), "utf8")).toContain(
      "exec /usr/lib/muster/agent/runtime/node",
    );
  });

  it("contains the agent's way into a GPU driver, for the package's own C library only", async () => {
    const home = homeOf(AGENT);
    const library = join(home, "agent/system/gpu-memory/cuda-library.js");
    const code = `const { openCuda } = await import(${JSON.stringify(library)});
      try { openCuda("libc.so.6"); } catch (error) { console.log(error.fault, error.message); }`;
    const run = await execa(join(home, "runtime/node"), ["--input-type=module", "--eval", code], {
      cwd: "/",
      extendEnv: false,
    });
    expect(run.stdout).toMatch(/^driver_too_old The library libc[.]so[.]6 has no cu/);
    const binaries = (await filesBelow(home)).filter((file) => file.endsWith(".node"));
    expect(binaries.map((file) => relative(home, dirname(file)))).toEqual([
      expect.stringMatching(/^node_modules\/@koromix\/koffi-linux-(x64|arm64)\/linux_(x64|arm64)$/),
    ]);
  });

  it("contains the hub's thread that checks the answers of GPUs", async () => {
    const home = homeOf(HUB);
    const code = `const { AnswerChecker } = await import(${JSON.stringify(join(home, "hub/gpu-memory/answer-checker.js"))});
      const checker = new AnswerChecker();
      const check = { fill_task_id: "x", seed: "00".repeat(32), nonce: "00".repeat(16) };
      const gpus = [{ gpu: 0, uuid: "GPU-1", blocks: [0], answers: ["no"] }];
      console.log(JSON.stringify(await checker.check({ ...check, gpus })));
      await checker.close();`;
    const script = join(folder, "check-answers.mjs");
    writeFileSync(script, code);
    const run = await execa(join(home, "runtime/node"), [script], { cwd: "/", extendEnv: false });
    expect(JSON.parse(run.stdout)).toEqual([{ uuid: "GPU-1", asked: 1, correct: 0 }]);
  });

  it("contains a hub that starts from its package alone, with its database, its page and its command line", async () => {
    const home = homeOf(HUB);
    const node = join(home, "runtime/node");
    const hub = startChild({
      name: "packaged hub",
      command: node,
      script: join(home, "hub/main.js"),
      env: {
        MUSTER_STATE_DIR: join(folder, "state"),
        MUSTER_HTTP_PORT: "0",
        MUSTER_AGENT_URL: "https://localhost:1",
        MUSTER_AGENT_PORT: "0",
        // A hub with a collector loads the modules of OpenTelemetry, which another hub does not load.
        MUSTER_TRACES_URL: "http://127.0.0.1:1/v1/traces",
      },
      logFile: join(folder, "hub.log"),
    });
    try {
      const { listening: url } = (await hub.ready) as { listening: string };
      await until("the hub is ready", async () => ((await fetch(`${url}/readyz`)).ok ? true : undefined));
      expect(await (await fetch(url)).text()).toContain("<title>Muster</title>");
      const cli = await execa(
        node,
        [join(home, "hub/cli/main.js"), "list-nodes", "--hub", url].concat(
          "--token-file",
          join(folder, "state/admin-token"),
        ),
        { cwd: "/", extendEnv: false },
      );
      expect(cli.stdout).toBe("None.");
      const command = readFileSync(unpacked(HUB.name, "usr/bin/muster"), "utf8");
      expect(command).toContain("hub/cli/main.js");
      const help = await execa(node, [join(home, "hub/cli/main.js"), "help", "get", "nodes"], {
        cwd: "/",
        extendEnv: false,
      });
      expect(help.stdout).toContain("--hostname-prefix");
      for (const [file, [word = ""]] of Object.entries(HUB.written))
        expect(readFileSync(unpacked(HUB.name, file), "utf8"), file).toContain(
          word === "man" ? ".TH MUSTER 1" : "muster",
        );
    } finally {
      await hub.stop();
    }
  });

  it("contains a hub that makes and loads a backup of its embedded database from the package alone", async () => {
    const home = homeOf(HUB);
    const run = async (state: string, ...words: string[]): Promise<string> => {
      const env = { MUSTER_STATE_DIR: join(folder, state), PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
      const { stdout } = await execa(join(home, "runtime/node"), [join(home, "hub/main.js"), ...words], {
        ...{ cwd: "/", extendEnv: false, env },
      });
      return stdout;
    };
    const safe = join(folder, "safe");
    mkdirSync(safe);
    // The test before has left the state of a hub that ran.
    const backup = /^Backup: (.*)$/m.exec(await run("state", "backup", "--to", safe))?.[1] ?? "";
    mkdirSync(join(folder, "restored/secrets"), { recursive: true, mode: 0o700 });
    cpSync(join(folder, "state/secrets/key"), join(folder, "restored/secrets/key"));
    expect(await run("restored", "restore", "--from", backup)).toContain("Restored the database as of");
    for (const page of HUB.docs)
      expect(statSync(unpacked(HUB.name, `usr/share/doc/${HUB.name}/${page}`)).size).toBeGreaterThan(1_000);
    expect(HUB.docs).toContain("operate.md");
  });

  it.each(PACKAGES)("$name has maintainer scripts and a unit that pass their checkers", async (spec) => {
    const scripts = ["postinst", "prerm", "postrm"].map((script) => unpacked(spec.name, `DEBIAN/${script}`));
    for (const file of Object.values(spec.files).map((one) => unpacked(spec.name, one)))
      if (readFileSync(file, "utf8").startsWith("#!/bin/sh")) scripts.push(file);
    for (const script of scripts) expect(await execa("sh", ["-n", script])).toMatchObject({ exitCode: 0 });
    if (existsSync("/usr/bin/shellcheck")) await execa("shellcheck", scripts);
    if (!existsSync("/usr/bin/systemd-analyze")) return;
    const unit = unpacked(spec.name, `usr/lib/systemd/system/${spec.name}.service`);
    const root = unpacked(spec.name);
    // The package's systemd unit names Node.js and the package's program by their paths on an installed host.
    const verified = await execa("systemd-analyze", ["verify", "--man=no", "--root", root, unit], { reject: false });
    // The unpacked package lacks programs that every Debian system has, so systemd's complaints about missing programs do not count.
    const elsewhere = /not found|Command \/bin\/kill is not executable/;
    expect(verified.stderr.split("\n").filter((line) => line.includes(spec.name) && !elsewhere.test(line))).toEqual([]);
  });

  it.each(PACKAGES)("$name contains every file that its configuration and its unit name", async (spec) => {
    const files = Object.values(spec.files).map((file) => unpacked(spec.name, file));
    const named = files.flatMap(
      (file) => readFileSync(file, "utf8").match(/\/usr\/(share|lib|bin)\/[a-z0-9./-]*[a-z0-9]/g) ?? [],
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((path) => !existsSync(unpacked(spec.name, path)))).toEqual([]);
  });

  it("refuses an unknown architecture or package, and lists the known ones", async () => {
    expect(await build("c", "--arch", "mips")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(Object.keys(ARCHITECTURES).join(" or ")),
    });
    expect(await build("c", "--only", "muster")).toMatchObject({ exitCode: 1 });
  });
});
