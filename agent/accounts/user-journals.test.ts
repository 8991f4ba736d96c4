import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { removeHome } from "./home-and-account.ts";
import type { Revocation } from "./tenant.ts";

const FOLDER = "var/log/journal/0123456789abcdef0123456789abcdef";
const OTHERS = ["system.journal", "user-1000.journal", "user-2000.journal", "user-200000@01.journal"];

describe("the journals of a tenant's programs", () => {
  let host: HostFolder;
  beforeEach(() => {
    host = new HostFolder();
    host.write("proc/self/mountinfo", "");
    host.write("run/systemd/system/.keep", "");
    for (const name of ["user-20000.journal", ...OTHERS]) host.write(`${FOLDER}/${name}`, "x");
    host.write(`${FOLDER}/user-165540@01.journal~`, "x");
  });
  afterEach(() => host.remove());
  const revocation = (plan = false): Revocation => ({
    system: host.system,
    tenant: {
      allocationId: "5f0c1a52-0000-4000-8000-000000000009",
      loginUser: "ada",
      uid: 20_000,
      home: "/home/ada",
      subUids: [{ owner: "ada", first: 165_536, count: 10 }],
    },
    plan,
    signal: new AbortController().signal,
    alive: () => undefined,
  });
  /** journald writes the messages that it holds at `--sync`, and gives its open files new names at `--rotate`. */
  const JOURNALD = `
    cd "$MUSTER_ROOT/${FOLDER}" || exit 1
    case "$1" in
      --sync) echo late > user-165536.journal ;;
      --rotate) mv user-20000.journal user-20000@01-02.journal ;;
    esac`;

  it("are removed after journald has written and closed them, and those of other users stay", async () => {
    host.tool("journalctl", JOURNALD);
    expect(await removeHome(revocation())).toMatchObject({
      outcome: "ok",
      message: "There was no home. 4 journals of the user were removed.",
      evidence: { journals: 4 },
    });
    expect(host.calls()).toEqual(["journalctl --sync", "journalctl --rotate"]);
    expect(await host.system.list(`/${FOLDER}`)).toEqual(OTHERS);
  });

  it("are only counted by a plan", async () => {
    host.tool("journalctl", JOURNALD);
    expect(await removeHome(revocation(true))).toMatchObject({
      outcome: "planned",
      message: "There is no home. 2 journals of the user would be removed.",
    });
    expect(host.calls()).toEqual([]);
    expect(host.has(`${FOLDER}/user-20000.journal`)).toBe(true);
  });

  it("fail the step if journald makes one again", async () => {
    host.tool("journalctl", "exit 1");
    const removeConfined: typeof host.system.removeConfined = async (path, limits) => {
      const removal = await host.system.removeConfined(path, limits);
      if (path.endsWith("user-20000.journal")) host.write(`${FOLDER}/user-20000.journal`, "again");
      return removal;
    };
    const { system, ...rest } = revocation();
    const step = await removeHome({ ...rest, system: { ...system, removeConfined } });
    expect(step).toMatchObject({ outcome: "failed", evidence: { first_left: `/${FOLDER}/user-20000.journal` } });
    expect(step.message).toContain("journalctl ended with status 1");
  });

  it("are removed without journalctl on a host whose first process is not systemd", async () => {
    await host.system.removeTree("/run/systemd");
    expect(await removeHome(revocation())).toMatchObject({ outcome: "ok", evidence: { journals: 2 } });
    expect(await host.system.list(`/${FOLDER}`)).toEqual(OTHERS);
  });
});
