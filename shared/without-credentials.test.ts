import { describe, expect, it } from "vitest";
import { Secret } from "./secret.ts";
import { allWithoutCredentials, withoutCredentials } from "./without-credentials.ts";

describe("a text without credentials", () => {
  const password = `corr"ect <horse> & 'battery' \\ $taple é`;
  const known = [new Secret(password)];
  const html = password.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");

  it.each([
    ["as it is", password],
    ["in JSON", JSON.stringify({ x: [password] })],
    ["in an address", encodeURIComponent(password)],
    ["in a form", new URLSearchParams({ x: password }).toString()],
    ["in Django's page", html.replaceAll("'", "&#x27;")],
    ["in Python's repr", `'${password.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`],
    ["in base64", Buffer.from(password).toString("base64")],
  ])("redacts a known secret %s", (_how, text) => {
    const left = withoutCredentials(`Select a valid choice. ${text} is none.`, known);
    expect(left).toMatch(/^Select a valid choice\. .*\[redacted\].* is none\.$/);
    expect(left).not.toMatch(/corr|horse|battery|Y29yc/);
  });

  const token = "mN3kQ7_x-Zt0aB4cD5eF6gH7iJ8kL9mN0oP1qR2sT3u";
  it.each([
    `curl -H "Authorization: Bearer ${token}" failed`,
    `ENROLLMENT_TOKEN='${token}'`,
    `line 12: ${token}: command not found`,
    `https://hub.example/internal/v1/phone-home/${token}`,
    "usermod -p $6$qwLx.y/z$8fYx/bq1.Kd0 root",
    "token_secret: abcdef",
    `{"token_key": "abcdef"}`,
    `consumer_key: "abcdef"`,
    "postgres://muster:hunter2@db:5432/muster",
    "the token hvs.mN3kQ7aB4cD5eF6gH7iJ8kL9 has ended",
    "X-Vault-Token s.mN3kQ7aB4cD5eF6gH7iJ8kL9 is refused",
  ])("redacts text that looks like a secret: %s", (text) => {
    const left = withoutCredentials(text);
    expect(left).toContain("[redacted]");
    expect(left).not.toMatch(/mN3kQ7|qwLx|8fYx|abcdef|hunter2/);
  });

  it.each([
    "The order carries no machine token: MAAS gives one only once the machine is deployed.",
    "systemctl start maas_hardware_sync.service ended with status 1: Job for it failed.",
    "time-out during deployment",
    "muster-hub.service.d/override-of-the-environment.conf on hosts.maas-internal-name-of-a-region",
    "node 0b0e6f0e-3f0e-4f5e-9d4b-0d4d8c1f2a3b has no link eno8303",
    `sha256 ${"0123456789abcdef".repeat(4)} does not match`,
    "",
  ])("stays unchanged: %s", (text) => expect(withoutCredentials(text, known)).toBe(text));

  it.each(["secret", "pass_", "token", "token_a", "api_key", "://", "Bearer ", "$1$", "aA1-", "secret: "])(
    "is had of a long one that repeats %s in time that grows with its length alone",
    (word) => expect(withoutCredentials(word.repeat(500_000 / word.length))).toBeTypeOf("string"),
  );

  it("is the same among several texts as alone", () => {
    const document = new Secret(
      Buffer.from(`#!/bin/bash\n${"echo some line of a host's script\n".repeat(20)}`).toString("base64"),
    );
    const texts = [
      "",
      `pass ${password}`,
      "line 3: echo some line of a host's script: not found",
      document.reveal().slice(5, 90),
      "nothing of it",
    ];
    const secrets = [...known, document];
    expect(allWithoutCredentials(texts, secrets)).toEqual(texts.map((text) => withoutCredentials(text, secrets)));
    expect(allWithoutCredentials(texts, secrets).join()).not.toMatch(/corr|some line of a|ZWNobyBzb21l/);
    expect(allWithoutCredentials([], secrets)).toEqual([]);
  });

  it("contains no line of a secret document, in base64 or decoded, complete or in pieces", () => {
    const script = `#!/bin/bash\n# line of a script that is nobody's business\nHASH='not-a-shape'\n${"x=1\n".repeat(50)}`;
    const message = `Content-Type: multipart/mixed\n\n${Buffer.from(script)
      .toString("base64")
      .match(/.{1,76}/g)
      ?.join("\n")}\n--end`;
    const userData = new Secret(Buffer.from(message).toString("base64"));
    for (const document of [script, message, userData.reveal()]) {
      const left = withoutCredentials(`user_data: ${document.slice(3, 120)} is refused by MAAS`, [userData]);
      expect(left).toMatch(/^user_data: .*\[redacted\].* is refused by MAAS$/s);
      expect(left.length).toBeLessThan(80);
    }
  });
});
