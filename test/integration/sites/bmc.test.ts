import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openBmc } from "../../../hub/bmc/open.ts";
import { BmcError, type BmcLogin, type BmcPort } from "../../../hub/bmc/port.ts";
import { Secret } from "../../../shared/secret.ts";
import { IPMI_PASS, IPMI_USER, type IpmiSim, NO_IPMI, startIpmiSim } from "../../fakes/bmc/ipmi-sim.ts";
import { REDFISH_PASS, REDFISH_USER, type RedfishBmc, startRedfishBmc } from "../../fakes/bmc/redfish.ts";
import { TestAuthority } from "../../fakes/hub/authority.ts";
import { freePort } from "../../support/free-port.ts";

const NEVER = new AbortController().signal;
const failed = async (call: Promise<unknown>): Promise<BmcError> => {
  const error = await call.then(
    () => new Error("it did not fail"),
    (met: unknown) => met,
  );
  if (error instanceof BmcError) return error;
  throw error;
};

if (NO_IPMI !== null) process.stderr.write(`${NO_IPMI}\n`);

describe.skipIf(NO_IPMI !== null)("a BMC by IPMI (SKIPPED without ipmitool and ipmi_sim)", () => {
  let sim: IpmiSim;
  const bmcOf = (login: Partial<BmcLogin> = {}, port = sim.port): BmcPort =>
    openBmc({ caFile: null, ports: { ipmi: port, redfish: 1 } })(
      { driver: "ipmi", address: "127.0.0.1", user: IPMI_USER, pass: new Secret(IPMI_PASS), ...login },
      NEVER,
    );
  beforeEach(async () => {
    sim = await startIpmiSim();
  });
  afterEach(() => sim?.close());

  it("reads and changes the power, and boots from the network once", async () => {
    const bmc = bmcOf();
    expect(await bmc.power()).toBe("on");
    await bmc.powerOff();
    expect(await bmc.power()).toBe("off");
    await bmc.bootFromNetworkOnce();
    await bmc.powerOn();
    expect(await bmc.power()).toBe("on");
    expect(sim.calls()).toEqual([{ power: "off" }, { boot: "pxe" }, { power: "on" }]);
  });

  it("distinguishes a refused login from an absent BMC, and repeats no password", async () => {
    const wrong = new Secret("wrong-password");
    const refused = await failed(bmcOf({ pass: wrong }).power());
    expect([refused.code, refused.address]).toEqual(["login_refused", "127.0.0.1"]);
    expect(JSON.stringify([refused.message, refused.stack])).not.toContain(wrong.reveal());
    expect((await failed(bmcOf({ user: "nobody" }).power())).code).toBe("login_refused");
    const silent = await failed(bmcOf({}, await freePort()).power());
    expect(silent.code).toBe("no_answer");
    expect(silent.message).toContain("127.0.0.1");
  });

  it("reports that ipmitool is missing", async () => {
    const path = process.env["PATH"];
    process.env["PATH"] = "/nowhere";
    const missing = await failed(bmcOf().power()).finally(() => {
      process.env["PATH"] = path;
    });
    expect(missing.code).toBe("tool_missing");
  });
});

describe("a BMC by Redfish", () => {
  let authority: TestAuthority;
  let bmc: RedfishBmc;
  let caFile: string;
  beforeAll(async () => {
    authority = await TestAuthority.make();
    caFile = join(mkdtempSync(join(tmpdir(), "muster-bmc-ca-")), "ca.pem");
    writeFileSync(caFile, authority.caPem);
  });
  beforeEach(async () => {
    bmc = await startRedfishBmc(await authority.server());
  });
  afterEach(() => bmc?.close());
  afterAll(() => rmSync(dirname(caFile), { recursive: true, force: true }));
  const bmcOf = (login: Partial<BmcLogin> = {}, ca: string | null = null, port = bmc.port): BmcPort =>
    openBmc({ caFile: ca, ports: { ipmi: 1, redfish: port } })(
      { driver: "redfish", address: "127.0.0.1", user: REDFISH_USER, pass: new Secret(REDFISH_PASS), ...login },
      NEVER,
    );

  it("reads and changes the power, and boots from the network once", async () => {
    const to = bmcOf();
    expect(await to.power()).toBe("on");
    await to.powerOff();
    expect(await to.power()).toBe("off");
    await to.bootFromNetworkOnce();
    await to.powerOn();
    expect([await to.power(), bmc.bootedFrom]).toEqual(["on", "Pxe"]);
    bmc.power = "PoweringOff";
    expect(await to.power()).toBe("changing");
  });

  it("checks the BMC's certificate if the hub has a CA file for BMCs", async () => {
    expect(await bmcOf({}, caFile).power()).toBe("on");
    const stranger = await startRedfishBmc(await (await TestAuthority.make()).server());
    const met = await failed(bmcOf({}, caFile, stranger.port).power());
    expect([met.code, stranger.calls]).toEqual(["untrusted", []]);
    expect(await bmcOf({}, null, stranger.port).power()).toBe("on");
    await stranger.close();
    expect((await failed(bmcOf({}, `${caFile}.gone`).power())).code).toBe("untrusted");
  });

  it("tries a login once, and reports other errors in a short text without the password", async () => {
    const wrong = await failed(bmcOf({ pass: new Secret("wrong-password") }).power());
    expect([wrong.code, bmc.calls]).toEqual(["login_refused", ["login refused"]]);
    bmc.fault = { status: 500, body: `it is ${REDFISH_PASS} ${"x".repeat(5000)}` };
    const broken = await failed(bmcOf().power());
    expect(broken.code).toBe("action_failed");
    expect(broken.message).not.toContain(REDFISH_PASS);
    expect(broken.message.length).toBeLessThan(400);
    // A text that is cut before it is redacted ends within the password, wherever the cut is.
    for (let length = 1; length < 2_600; length += 9) {
      bmc.fault = { status: 500, body: `Bearer ${"a".repeat(length)} ${REDFISH_PASS} again` };
      expect((await failed(bmcOf().power())).message).not.toContain(REDFISH_PASS.slice(0, 5));
    }
    bmc.fault = { status: 200, body: "<html>" };
    expect((await failed(bmcOf().power())).code).toBe("action_failed");
    bmc.fault = null;
    bmc.systems = 2;
    expect((await failed(bmcOf().powerOff())).message).toContain("2 Redfish systems");
    expect(bmc.power).toBe("On");
    expect((await failed(bmcOf({}, null, await freePort()).power())).code).toBe("no_answer");
  });
});
