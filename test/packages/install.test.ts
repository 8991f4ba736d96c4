import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { packDeb } from "../../packaging/deb.ts";
import type { PackageSpec } from "../../packaging/package-spec.ts";
import { AGENT, HUB } from "../../packaging/packages.ts";
import { stagePackagingFiles } from "../../packaging/stage-files.ts";
import { DebianRoot } from "./debian-root.ts";

/** The tests install Muster's real packages without the programs inside, because small packages install faster. */
const repository = new URL("../..", import.meta.url).pathname;
const architecture = process.arch === "arm64" ? "arm64" : "amd64";
const other = architecture === "amd64" ? "arm64" : "amd64";
const lacks = DebianRoot.lacks();
const DAY_MS = 86_400_000;
const TOLD = "var/lib/muster/hub/agent-packages";
const agentFile = (version: string, kind: string = architecture) => `muster-agent_${version}_${kind}.deb`;
/** The option `--no-triggers` keeps dpkg from running the triggers of packages other than Muster's. */
const DPKG = "dpkg --no-triggers --force-depends --force-unsafe-io";
/** A Perl program that runs a command while another process holds dpkg's lock, which is a lock of fcntl. */
const UNDER_THE_LOCK = [
  'use Fcntl; open(my $file, ">", "/var/lib/dpkg/lock-frontend") or die;',
  'my $lock = pack("ssx4qqlx4", F_WRLCK, 0, 0, 0, 0); fcntl($file, F_SETLK, $lock) or die;',
  "exit(system(@ARGV) >> 8)",
].join(" ");

let packages: string;
let root: DebianRoot;

async function packageOf(spec: PackageSpec, version: string, built: readonly string[]): Promise<string> {
  const staged = mkdtempSync(join(tmpdir(), "muster-staged-"));
  try {
    chmodSync(staged, 0o755);
    await stagePackagingFiles({ repository, root: staged, spec, architecture, version }, built);
    return await packDeb(
      { repository, root: staged, spec, architecture, version, sourceDateEpoch: 1_700_000_000, compression: "zstd" },
      packages,
    );
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
}

const install = async (name: string, version: string) => {
  const file = `${name}_${version}_${architecture}.deb`;
  cpSync(join(packages, file), root.path(`tmp/${file}`));
  expect(await root.run(`${DPKG} -i /tmp/${file}`)).toMatchObject({ exitCode: 0 });
};
const put = (path: string, text = "", ageDays = 0) => {
  mkdirSync(join(root.path(path), ".."), { recursive: true });
  writeFileSync(root.path(path), text);
  const at = new Date(Date.now() - ageDays * DAY_MS);
  utimesSync(root.path(path), at, at);
};
const told = () => readdirSync(root.path(TOLD)).sort();

describe.skipIf(lacks !== null)(`the Debian packages, installed (SKIPPED where ${lacks ?? "they cannot be"})`, () => {
  beforeAll(async () => {
    packages = mkdtempSync(join(tmpdir(), "muster-install-"));
    for (const version of ["0.1.0", "0.2.0", "0.3.0"]) {
      const agent = await packageOf(AGENT, version, []);
      await packageOf(HUB, version, [agent]);
    }
  });
  afterAll(() => rmSync(packages, { recursive: true, force: true }));
  beforeEach(() => {
    root = new DebianRoot();
  });
  afterEach(() => root.remove());

  it("keep the agent packages that hosts were offered for a month after an upgrade, and the operator's own packages", async () => {
    await install("muster-hub", "0.1.0");
    put(`${TOLD}/${agentFile("0.1.0")}`, "told until today", 45);
    for (const file of [agentFile("0.0.9"), agentFile("0.1.0", other), agentFile("0.9.0")])
      put(`${TOLD}/${file}`, file, 45);
    await install("muster-hub", "0.2.0");
    expect(told()).toEqual(
      [agentFile("0.1.0"), agentFile("0.1.0", other), agentFile("0.2.0"), agentFile("0.9.0")].sort(),
    );
    // The agent's package 0.1.0 was replaced less than a month before the first upgrade to 0.3.0. Before the second upgrade, the test makes the file
    // of the agent's package 0.1.0 31 days old.
    await install("muster-hub", "0.3.0");
    expect(told()).toContain(agentFile("0.1.0"));
    put(`${TOLD}/${agentFile("0.1.0")}`, "", 31);
    await install("muster-hub", "0.3.0");
    expect(told()).toEqual(
      [agentFile("0.1.0", other), agentFile("0.2.0"), agentFile("0.3.0"), agentFile("0.9.0")].sort(),
    );
  });

  it("do nothing as root in the hub's own folder, where the service may have put a link", async () => {
    await install("muster-hub", "0.1.0");
    rmSync(root.path(TOLD), { recursive: true });
    symlinkSync("/etc", root.path(TOLD));
    const file = `muster-hub_0.2.0_${architecture}.deb`;
    cpSync(join(packages, file), root.path(`tmp/${file}`));
    const upgrade = await root.run(`${DPKG} -i /tmp/${file}`);
    expect(upgrade).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("then run: dpkg --configure muster-hub"),
    });
    expect(await root.run(`stat -c %U /etc; ls /etc | grep -c '[.]deb$' || true`)).toMatchObject({ stdout: "root\n0" });
    // The test follows the instruction in the error text of the failed installation, and the instruction must repair the installation.
    rmSync(root.path(TOLD));
    expect(await root.run("dpkg --configure muster-hub")).toMatchObject({ exitCode: 0 });
    expect(told()).toEqual([agentFile("0.2.0")]);
    expect(await root.run(`stat -c '%U %a' /${TOLD} /${TOLD}/*`)).toMatchObject({ stdout: "muster 755\nmuster 644" });
  });

  it("remove everything of an agent that is purged during a drain, and allow logins again", async () => {
    await install("muster-agent", "0.1.0");
    put("var/lib/muster/agent/drain.json");
    put("var/lib/muster/bootstrap/20-agent-bootstrap.status");
    put("var/lib/muster/uninstalling");
    const nologin = "This host is being drained by Muster (task 1).";
    await root.run(
      `mkdir /etc/muster; cd /etc/muster; touch .muster.AbCdEf agent.json ca.pem; echo '${nologin}' >/etc/nologin`,
    );
    expect(await root.run(`${DPKG} --purge muster-agent`)).toMatchObject({ exitCode: 0 });
    expect(root.added()).toEqual([]);
    expect(() => lstatSync(root.path("var/lib/muster"))).toThrow("ENOENT");
  });

  it("keep another program's block of logins, and the hub, when the agent on the same host is purged", async () => {
    await install("muster-agent", "0.1.0");
    await install("muster-hub", "0.1.0");
    put("var/lib/muster/hub/postgres/cluster/data/PG_VERSION");
    await root.run("echo 'Maintenance until 9' >/etc/nologin");
    expect(await root.run(`${DPKG} --purge muster-agent`)).toMatchObject({ exitCode: 0 });
    expect(root.added()).toEqual(
      expect.arrayContaining([
        "/etc/nologin",
        "/etc/muster/hub.env",
        "/var/lib/muster/hub/postgres/cluster/data/PG_VERSION",
      ]),
    );
  });

  it("are purged only when dpkg's lock is free, and keep the mark of a removal until then", async () => {
    await install("muster-agent", "0.1.0");
    put("var/lib/muster/uninstalling");
    const held = await root.run(`perl -e '${UNDER_THE_LOCK}' ${DPKG} --purge muster-agent`);
    expect(held).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("lock") });
    expect(lstatSync(root.path("var/lib/muster/uninstalling")).isFile()).toBe(true);
    expect(await root.run(`${DPKG} --purge muster-agent`)).toMatchObject({ exitCode: 0 });
    expect(root.added()).toEqual([]);
  });
});
