import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { UserDataInput, type UserDataValues } from "./input.ts";
import { PARTS } from "./parts/index.ts";

const CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

export const sampleValues = (): UserDataValues => ({
  hostname: "gpu-01",
  nodeId: "0b0c0a7e-6a52-4d0a-9a9d-0d3f5f3c1a11",
  generation: 1,
  hub: { agentUrl: "https://hub.test:8443", caBundlePem: CERTIFICATE, taskSigningPublicKey: "A".repeat(43) },
  enrollmentToken: "not-a-real-token-".padEnd(43, "x"),
  agent: {},
  siteBootstrap: { ref: "site/base", url: "http://127.0.0.1:9/bundle", sha256: "0".repeat(64), version: "7" },
  hardwareSync: { enabled: true, maasUrl: "http://region.test:5240/MAAS", intervalSeconds: 900 },
  extraDisks: { enabled: true, eraseSignatures: false, keepOnly: false },
  roce: { assignments: [{ interface: "ens1f0np0", ipv4Cidr: "10.1.0.0/31", mac: "02:00:00:00:00:01" }] },
  deployUser: {
    name: "hpcadmin",
    passwordHash: `$6$saltsalt$${"x".repeat(86)}`,
    sshAuthorizedKeys: ["ssh-ed25519 AAAA someone's key $(id) `id`"],
    sudo: true,
  },
});

export const sampleInput = (changes: Partial<UserDataValues> = {}): UserDataInput =>
  UserDataInput.parse({ ...sampleValues(), ...changes });

/** The test's input may break the input's schema, because even then no value may become code of the rendered shell script. */
export const renderPart = (name: string, input: UserDataInput): string => {
  const text = PARTS.find((part) => part.name === name)?.render(input);
  if (text === undefined || text === null) throw new Error(`the part ${name} was not rendered`);
  return text;
};

export const hasCommand = (command: string): boolean => spawnSync(command, ["--version"]).error === undefined;

/** When the tool is missing, `skipWithout` prints that the test was skipped because of this tool. */
export const skipWithout = (command: string, debianPackage: string): boolean => {
  const there = hasCommand(command);
  if (!there) process.stderr.write(`SKIPPED: ${command} is not installed (Debian package ${debianPackage})\n`);
  return !there;
};

export type PartRun = { readonly code: number; readonly output: string; readonly status: unknown };

/** A temporary folder that stands for a host's root in tests. The tools in the test's folder append their arguments to a log. */
export class HostFolder {
  readonly root: string;
  constructor() {
    this.root = mkdtempSync(join(tmpdir(), "muster-root-"));
  }
  path(name: string): string {
    return join(this.root, name);
  }
  read(name: string): string {
    return readFileSync(this.path(name), "utf8");
  }
  write(name: string, content: string, mode = 0o644): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content);
    chmodSync(this.path(name), mode);
  }
  /** Installs a simulated tool in the test's folder. The simulated tool logs its arguments, and runs the shell text `script` afterwards. */
  tool(name: string, script = ""): void {
    this.write(
      `usr/bin/${name}`,
      `#!/bin/bash\nroot='${this.root}'\necho "${name} $*" >>"$root/calls"\n${script}\n`,
      0o755,
    );
  }
  calls(): string[] {
    try {
      return this.read("calls").trimEnd().split("\n");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    }
  }
  run(name: string, input: UserDataInput, env: Record<string, string> = {}): Promise<PartRun> {
    const script = this.path(`tmp/${name}`);
    this.write(`tmp/${name}`, renderPart(name, input), 0o755);
    return new Promise((resolve) => {
      const options = { env: { PATH: process.env["PATH"] ?? "", ...env, MUSTER_ROOT: this.root } };
      execFile("bash", [script], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        const file = `var/lib/muster/bootstrap/${name.replace(/\.sh$/, "")}.status`;
        resolve({ code, output: stdout + stderr, status: JSON.parse(this.read(file)) });
      });
    });
  }
  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
