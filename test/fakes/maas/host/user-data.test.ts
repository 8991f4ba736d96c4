import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { unpackUserData } from "./user-data.ts";

test("a single script is one part, plain or gzip", () => {
  const script = Buffer.from("#!/bin/sh\necho hi\n");
  for (const bytes of [script, gzipSync(script)]) {
    expect(unpackUserData(bytes)).toEqual([
      { filename: "part-001", contentType: "text/x-shellscript", content: script },
    ]);
  }
});

test("empty user data has no parts", () => {
  expect(unpackUserData(Buffer.alloc(0))).toEqual([]);
});

test("the parts of a message have names, types and decoded bytes, also in nested messages", () => {
  const message = [
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed;",
    '\tboundary="out er"',
    "",
    "what stands before the first part is not one",
    "--out er",
    'Content-Type: text/x-shellscript; charset="utf-8"',
    "Content-Transfer-Encoding: base64",
    'Content-Disposition: attachment; filename="a \\"b\\".sh"',
    "",
    Buffer.from("#!/bin/sh\necho ü\n").toString("base64"),
    "--out er",
    "Content-Type: multipart/mixed; boundary=inner",
    "",
    "--inner",
    "Content-Type: text/plain",
    "Content-Transfer-Encoding: quoted-printable",
    "",
    "#cloud-config=0Ax: =",
    "1",
    "--inner--",
    "--out er--",
    "nor what stands after the last",
  ].join("\r\n");
  const parts = unpackUserData(Buffer.from(message));
  expect(parts.map(({ filename, contentType, content }) => [filename, contentType, content.toString("utf8")])).toEqual([
    ['a "b".sh', "text/x-shellscript", "#!/bin/sh\necho ü\n"],
    ["part-002", "text/cloud-config", "#cloud-config\nx: 1"],
  ]);
});
