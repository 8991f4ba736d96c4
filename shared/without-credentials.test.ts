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
    ["in another page", html.replaceAll("'", "&#39;")],
    ["in JSON in Python's repr", `'${JSON.stringify({ x: password }).replaceAll("'", "\\'")}'`],
    ["in Python's repr", `'${password.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`],
    ["in base64", Buffer.from(password).toString("base64")],
  ])("redacts a known secret %s", (_how, text) => {
    const left = withoutCredentials(`Select a valid choice. ${text} is none.`, known);
    expect(left).toMatch(/^Select a valid choice\. .*\[redacted\].* is none\.$/);
    expect(left).not.toMatch(/corr|horse|battery|Y29yc/);
  });

  it("redacts a short known secret in base64, and a known secret that is no whole text in UTF-16", () => {
    expect(withoutCredentials("login aHVudGVyMg== refused", [new Secret("hunter2")])).toBe("login [redacted] refused");
    expect(withoutCredentials("login ab%EF%BF%BDcd refused", [new Secret("ab\ud800cd")])).toBe(
      "login [redacted] refused",
    );
  });

  it("redacts the whole of a known secret that begins with another, and no secret of three letters", () => {
    const secrets = [new Secret("gala"), new Secret("gala-dinner"), new Secret("the"), new Secret("")];
    expect(withoutCredentials("the gala-dinner, gala", secrets)).toBe("the [redacted], [redacted]");
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

  // Each text has one secret of a form that no other rule finds, so the loss of a rule, or of a word in a rule, changes one text.
  it.each([
    ["Expected signature base string: GET&http%3A%2F%2Fmaas", "Expected signature base string: [redacted]"],
    ["-H 'Authorization: Bearer hunter2-a.b~c' -k", "-H 'Authorization: Bearer [redacted]' -k"],
    ["> authorization: basic cm9vdDpodW50ZXIy;", "> authorization: basic [redacted];"],
    ["WEKA_CLIENT_SECRET=hunter2 weka status", "WEKA_CLIENT_SECRET=[redacted] weka status"],
    ["mount -o username=ada,password=hunter2,vers=3.0", "mount -o username=ada,password=[redacted],vers=3.0"],
    ["power_pass: hunter2, power_user: root", "power_pass: [redacted], power_user: root"],
    ["passphrase = 'hunter2' of the key", "passphrase = '[redacted]' of the key"],
    [`oauth_signature="hunter2", oauth_nonce="7"`, `oauth_signature="[redacted]", oauth_nonce="7"`],
    [`{"consumer_key": "hunter2", "n": 1}`, `{"consumer_key": "[redacted]", "n": 1}`],
    ["AWS_SECRET_ACCESS_KEY=hunter2 AWS_REGION=eu", "AWS_SECRET_ACCESS_KEY=[redacted] AWS_REGION=eu"],
    ["s3 access_key:hunter2 host:a", "s3 access_key:[redacted] host:a"],
    ["NGC_API_KEY=hunter2 ngc registry", "NGC_API_KEY=[redacted] ngc registry"],
    ["private_key=hunter2 public_key=x", "private_key=[redacted] public_key=x"],
    ["GET /v1?token=hunter2 answered 403", "GET /v1?token=[redacted] answered 403"],
    ["HF_TOKEN = 'hunter2' is refused", "HF_TOKEN = '[redacted]' is refused"],
    ["token_value=hunter2 is refused", "token_value=[redacted] is refused"],
    [`{"token": "hunter2", "n": 1}`, `{"token": "[redacted]", "n": 1}`],
    ["REFRESH_TOKEN_2: hunter2, n: 1", "REFRESH_TOKEN_2: [redacted], n: 1"],
    ...["1", "5", "6", "7", "2a", "2b", "2x", "2y", "y", "gy"].map((kind) => [
      `ada:$${kind}$salt$hash.of/it;`,
      "ada:[redacted];",
    ]),
    ["http://ada@nas/share and ftp://ada:hunter2@nas", "http://[redacted]@nas/share and ftp://[redacted]@nas"],
    ...["hvs", "hvb", "hvr", "s", "b", "r"].map((kind) => [
      `lease of ${kind}.${"ab".repeat(12)} ends`,
      "lease of [redacted] ends",
    ]),
    [`key ${token.slice(0, 32)}, cut`, "key [redacted], cut"],
  ])("redacts the secret and nothing else of: %s", (text = "", left = "") =>
    expect(withoutCredentials(text)).toBe(left),
  );

  it.each([
    "The order carries no machine token: MAAS gives one only once the machine is deployed.",
    "systemctl start maas_hardware_sync.service ended with status 1: Job for it failed.",
    "time-out during deployment",
    "muster-hub.service.d/override-of-the-environment.conf on hosts.maas-internal-name-of-a-region",
    "node 0b0e6f0e-3f0e-4f5e-9d4b-0d4d8c1f2a3b has no link eno8303",
    `sha256 ${"0123456789abcdef".repeat(4)} does not match`,
    `serial ${"0123456789ABCDEF".repeat(2)} is not in the host`,
    "torch.distributed.ProcessGroupNCCLWatchdogTimeoutException",
    `key ${token.slice(0, 31)}, too short to be one`,
    "muster.service.d, hubs.example.of-a-region-with-a-long-name and vars.a-name-with-many-letters-in-it",
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

  it("loses pieces of sixteen characters that a secret document has, and no shorter ones", () => {
    const line = "<the motto of ada's own script>";
    const script = `${line}\n${"x=1\n".repeat(100)}`;
    const encoded = new Secret(Buffer.from(script).toString("base64"));
    const pieceOf = (text: string, length: number) => `said ${text.slice(3, 3 + length)}|`;
    for (const [document, secret] of [
      [script, new Secret(script)],
      [script, encoded],
      [encoded.reveal(), encoded],
    ] as const) {
      expect(withoutCredentials(pieceOf(document, 16), [secret])).toBe("said [redacted]|");
      expect(withoutCredentials(pieceOf(document, 15), [secret])).toBe(pieceOf(document, 15));
    }
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
