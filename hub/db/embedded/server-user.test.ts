import { describe, expect, it } from "vitest";
import { parsePasswd } from "./server-user.ts";

describe("parsePasswd", () => {
  const passwd =
    "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/nonexistent:/bin/false\nnobody2:x:7:7::/:\n";

  it("finds ids only by the whole name", () => {
    expect(parsePasswd(passwd, "nobody")).toEqual({ name: "nobody", uid: 65534, gid: 65533 });
    expect(parsePasswd(passwd, "nobo")).toBeUndefined();
    expect(parsePasswd("", "nobody")).toBeUndefined();
  });

  it("converts the negative ids of macOS as the system does", () => {
    expect(parsePasswd("nobody:*:-2:-2:Unprivileged:/var/empty:/usr/bin/false", "nobody")?.uid).toBe(4_294_967_294);
  });
});
