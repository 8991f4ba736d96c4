import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type TrustKind, type TrustStatement, trustSigningText } from "../shared/trust.ts";
import { TestAuthority } from "../test/fakes/hub/authority.ts";
import { HostFolder } from "../test/fakes/hub/host-folder.ts";
import { newNodeId } from "../test/fakes/hub/orders.ts";
import { loadConfig } from "./config.ts";
import type { Log } from "./log.ts";
import { TrustStore } from "./trust.ts";

interface Keys {
  readonly ca_pem: string;
  readonly order_key: string;
  readonly signer: KeyObject;
}
async function makeKeys(): Promise<Keys> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const order_key = publicKey.export({ format: "jwk" }).x ?? "";
  return { ca_pem: (await TestAuthority.make()).caPem, order_key, signer: privateKey };
}
function say(by: Keys, sequence: number, kind: TrustKind, { ca_pem, order_key }: Keys): TrustStatement {
  const unsigned = { sequence, kind, generation: 2, ca_pem, order_key };
  const signature = sign(null, Buffer.from(trustSigningText(unsigned)), by.signer).toString("base64url");
  return { ...unsigned, signature };
}

let host: HostFolder;
let [first, second]: Keys[] = [];
let told: string[];
beforeEach(async () => {
  host = new HostFolder();
  [first, second] = [await makeKeys(), await makeKeys()];
  told = [];
});
afterEach(() => host.remove());

/** The test's host got the keys in the argument from its bootstrap. */
function given({ ca_pem, order_key }: Keys): TrustStore {
  host.write("etc/muster/ca.pem", ca_pem);
  const config = {
    hub_url: "https://127.0.0.1:1",
    node_id: newNodeId(),
    generation: 1,
    enrollment_token_file: "/etc/muster/enrollment-token",
    ca_file: "/etc/muster/ca.pem",
    task_signing_public_key: order_key,
  };
  host.write("etc/muster/agent.json", JSON.stringify(config));
  const note = (level: string) => (what: string) => void told.push(`${level}: ${what}`);
  const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") } as unknown as Log;
  return new TrustStore(loadConfig([], { MUSTER_ROOT: host.root }), host.system, log);
}
const alarms = () => told.filter((line) => line.startsWith("error"));

describe("the chain of the hub's keys on a host", () => {
  it("raises no alarm on a host with keys whose finish is not announced yet, and follows them later", async () => {
    const announced = say(first as Keys, 1, "announce", second as Keys);
    const finished = say(first as Keys, 2, "finish", second as Keys);
    const trust = given(second as Keys);
    expect(await trust.take([announced])).toBe(0);
    expect(alarms()).toEqual([]);
    expect(told).toEqual([expect.stringContaining("newer keys")]);
    expect(await trust.take([announced, finished])).toBe(2);
    expect(alarms()).toEqual([]);
    expect(await trust.caBundle()).toBe((second as Keys).ca_pem);
  });

  it.each(["of a stranger", "told to a host that follows it already", "that ended with the given keys"])(
    "raises an alarm for an invalid chain %s",
    async (which) => {
      const [one, two, stranger] = [first as Keys, second as Keys, await makeKeys()];
      const chain = [say(one, 1, "announce", two), say(one, 2, "finish", two)];
      if (which === "of a stranger") await given(one).take([say(stranger, 1, "announce", two)]);
      if (which === "that ended with the given keys")
        await given(two).take([...chain, say(one, 3, "announce", stranger)]);
      if (which === "told to a host that follows it already") {
        const trust = given(one);
        await trust.take(chain);
        expect(alarms()).toEqual([]);
        await trust.take([...chain, say(stranger, 3, "announce", one)]);
      }
      expect(alarms()).toEqual([expect.stringContaining("not believed")]);
    },
  );
});
