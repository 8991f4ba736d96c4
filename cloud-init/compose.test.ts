import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { composeUserData, MAX_USER_DATA_BYTES, type UserData } from "./compose.ts";
import type { UserDataValues } from "./input.ts";
import { HostFolder, hasCommand, renderPart, sampleInput, sampleValues, skipWithout } from "./part.fixture.ts";
import { PARTS } from "./parts/index.ts";

const composed = (values: UserDataValues = sampleValues()): UserData => {
  const result = composeUserData(values);
  if (!result.ok) throw new Error(result.error.message);
  return result.userData;
};
const errorOf = (values: unknown) => {
  const result = composeUserData(values as UserDataValues);
  if (result.ok) throw new Error("expected an error");
  return result.error;
};

const PYTHON_PARSER = `
import email, email.policy, json, sys
message = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default)
json.dump({"defects": [str(d) for d in message.defects], "type": message.get_content_type(), "parts": [
  {"name": p.get_filename(), "type": p.get_content_type(), "disposition": p.get_content_disposition(),
   "defects": [str(d) for d in p.defects], "text": p.get_payload(decode=True).decode()} for p in message.iter_parts()]}, sys.stdout)
`;
/** Parses the user-data with cloud-init's own code, if cloud-init's package is installed. */
const CLOUD_INIT_PARSER = `
import json, sys
from cloudinit import user_data
message = user_data.convert_string(sys.stdin.buffer.read())
json.dump([{"name": p.get_filename(), "type": p.get_content_type(), "text": p.get_payload(decode=True).decode()}
  for p in message.walk() if not p.is_multipart()], sys.stdout)
`;
const python = (command: string, script: string, stdin: string): unknown => {
  const result = spawnSync(command, ["-c", script], { input: stdin, encoding: "utf8" });
  if (result.status !== 0) throw new Error(result.stderr);
  return JSON.parse(result.stdout);
};
const expectedParts = () =>
  PARTS.map((part) => ({ name: part.name, type: part.contentType, text: renderPart(part.name, sampleInput()) }));

describe("composeUserData", () => {
  it("names its parts in the order in which they run, and names each part's owner", () => {
    const names = composed().parts.map((part) => part.name);
    expect(names).toEqual([
      "00-cloud-config.yaml",
      "01-bootstrap-unit.sh",
      "10-site-bootstrap.sh",
      "20-agent-bootstrap.sh",
      "30-hardware-sync.sh",
      "40-extra-disks.sh",
      "50-roce-routing.sh",
      "60-deploy-user.sh",
    ]);
    expect(names).toEqual([...names].sort());
    expect(renderPart("10-site-bootstrap.sh", sampleInput())).toContain("PART_OWNER='site'");
  });

  it("leaves out parts that the host does not need, and includes extra disks only with their explicit flag", () => {
    const { siteBootstrap: _, deployUser: __, ...values } = sampleValues();
    const userData = composed({
      ...values,
      hardwareSync: { enabled: false, intervalSeconds: 900 },
      extraDisks: { enabled: false, eraseSignatures: true, keepOnly: false },
      roce: { assignments: [] },
    });
    expect(userData.parts.map((part) => part.name)).toEqual([
      "00-cloud-config.yaml",
      "01-bootstrap-unit.sh",
      "20-agent-bootstrap.sh",
    ]);
    expect(userData.mime).not.toContain("wipefs");
  });

  it("gives the same bytes for the same input, and their base64", () => {
    expect(composed()).toEqual(composed());
    expect(Buffer.from(composed().base64, "base64").toString("utf8")).toBe(composed().mime);
    expect(composed().bytes).toBe(Buffer.byteLength(composed().mime));
    expect(composed().mime).toMatch(/^[\n -~]*$/);
  });

  it("refuses user-data above the limit, and names the largest part", () => {
    const caBundlePem = `-----BEGIN CERTIFICATE-----\n${"A".repeat(MAX_USER_DATA_BYTES)}\n-----END CERTIFICATE-----\n`;
    const error = errorOf({ ...sampleValues(), hub: { ...sampleValues().hub, caBundlePem } });
    expect(error.code).toBe("user_data_too_large");
    expect(error.message).toContain("20-agent-bootstrap.sh");
    expect(composed().bytes).toBeLessThan(MAX_USER_DATA_BYTES / 8);
  });
});

const hub = () => sampleValues().hub;
const user = (changes: object) => ({ deployUser: { name: "a", sudo: true, ...changes } });
const hash = `$6$saltsalt$${"x".repeat(86)}`;
const key = (text: string) => user({ passwordHash: hash, sshAuthorizedKeys: [text] });
const bundle = (changes: object) => ({ siteBootstrap: { ...sampleValues().siteBootstrap, ...changes } });

describe("composeUserData refuses", () => {
  it.each([
    ["a host name that is shell", { hostname: "a$(id)" }, "hostname"],
    ["a host name of two lines", { hostname: "a\nb" }, "hostname"],
    ["a hub without TLS", { hub: { ...hub(), agentUrl: "http://hub.test" } }, "hub.agentUrl"],
    ["a hub address of two lines", { hub: { ...hub(), agentUrl: "https://hub.test/\nb" } }, "hub.agentUrl"],
    ["an address with a password", { hub: { ...hub(), agentUrl: "https://u:hunter2@hub.test" } }, "hub.agentUrl"],
    [
      "a CA bundle with a key in it",
      { hub: { ...hub(), caBundlePem: "-----BEGIN PRIVATE KEY-----\nhunter2" } },
      "hub.caBundlePem",
    ],
    ["a token with a line break", { enrollmentToken: `${"t".repeat(40)}\nhunter2` }, "enrollmentToken"],
    ["a clear-text password", user({ passwordHash: "hunter2" }), "deployUser.passwordHash"],
    ["a password field", user({ passwordHash: hash, password: "hunter2" }), "deployUser"],
    [
      "a user name that is a sudo rule",
      { deployUser: { name: "a ALL=ALL", passwordHash: hash, sudo: true } },
      "deployUser.name",
    ],
    ["an SSH key of two lines", key("ssh-ed25519 AAAA\nssh-rsa BBBB"), "deployUser.sshAuthorizedKeys.0"],
    ["an SSH key with options", key('command="id" ssh-ed25519 AAAA'), "deployUser.sshAuthorizedKeys.0"],
    ["a package without checksum", { agent: { packageUrl: "https://hub.test/p" } }, "agent.packageSha256"],
    ["a site bundle as inline text", bundle({ script: "id" }), "siteBootstrap"],
    ["a bundle reference of two lines", bundle({ ref: "a\nb" }), "siteBootstrap.ref"],
    [
      "an interface name with a space",
      { roce: { assignments: [{ interface: "a b", ipv4Cidr: "10.0.0.0/31" }] } },
      "roce.assignments.0.interface",
    ],
    [
      "extra disks without saying what of signatures",
      { extraDisks: { enabled: true, keepOnly: false } },
      "extraDisks.eraseSignatures",
    ],
    ["an unknown field", { maasToken: "hunter2" }, "input"],
  ])("%s", (_, changes, path) => {
    const error = errorOf({ ...sampleValues(), ...changes });
    expect(error).toMatchObject({ code: "invalid_input", issues: [{ path }] });
    expect(JSON.stringify(error)).not.toContain("hunter2");
  });

  it("values that are no input", () => {
    for (const value of [null, "text", 1, [], {}]) expect(errorOf(value).code).toBe("invalid_input");
  });
});

describe("the MIME message", () => {
  it.skipIf(skipWithout("python3", "python3"))("is parsed by Python's email parser without a defect", () => {
    const message = python("python3", PYTHON_PARSER, composed().mime);
    expect(message).toEqual({
      defects: [],
      type: "multipart/mixed",
      parts: expectedParts().map((part) => ({ ...part, disposition: "attachment", defects: [] })),
    });
  });

  it.skipIf(skipWithout("cloud-init", "cloud-init"))("is parsed by cloud-init itself, part by part", () => {
    expect(python("/usr/bin/python3", CLOUD_INIT_PARSER, composed().mime)).toEqual(expectedParts());
  });

  it("keeps MAAS's vendor-data: the cloud-config part contains no key that would replace it", () => {
    const configs = composed().parts.filter((part) => part.contentType === "text/cloud-config");
    expect(configs).toHaveLength(1);
    const [header, ...lines] = renderPart("00-cloud-config.yaml", sampleInput()).split("\n");
    expect(header).toBe("#cloud-config");
    expect(JSON.parse(lines.join("\n"))).toEqual({ hostname: "gpu-01", preserve_hostname: false });
  });

  it.skipIf(!hasCommand("cloud-init"))("has a cloud-config part that cloud-init schema accepts", () => {
    const folder = new HostFolder();
    folder.write("cloud-config.yaml", renderPart("00-cloud-config.yaml", sampleInput()));
    const args = ["schema", "--config-file", folder.path("cloud-config.yaml")];
    const result = spawnSync("cloud-init", args, { encoding: "utf8" });
    folder.remove();
    expect(result.stdout + result.stderr).toContain("Valid cloud-config");
    expect(result.status).toBe(0);
  });
});
