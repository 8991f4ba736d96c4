import { expect, it } from "vitest";
import { sshFingerprint } from "./ssh-fingerprint.ts";

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

it.each([KEY, `${KEY} tester@example`])(
  "prints the fingerprint that ssh-keygen -l prints, whatever the comment",
  (line) => {
    expect(sshFingerprint(line)).toBe("SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA");
  },
);
