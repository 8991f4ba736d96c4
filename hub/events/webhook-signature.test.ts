import { describe, expect, it } from "vitest";
import { Secret } from "../../shared/secret.ts";
import { signatureOf } from "./webhook-signature.ts";

describe("the signature of a webhook", () => {
  const message = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", sentAt: 1_614_265_330, body: '{"test": 2432232314}' };
  const secret = new Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");

  it("equals the published example of Standard Webhooks", () => {
    expect(signatureOf([secret], message)).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  it("contains one signature for each secret of a rotation", () => {
    const both = signatureOf([new Secret(`whsec_${Buffer.alloc(32, 7).toString("base64")}`), secret], message).split(
      " ",
    );
    expect(both).toHaveLength(2);
    expect(both[1]).toBe(signatureOf([secret], message));
  });
});
