import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { freePort } from "../../support/free-port.ts";
import { until } from "../../support/until.ts";

const isThere = (tool: string, args: readonly string[]): boolean => spawnSync(tool, args).error === undefined;

/** The reason why this computer skips tests with ipmi_sim, or null if Debian's packages ipmitool and openipmi are installed. */
export const NO_IPMI = ((): string | null => {
  if (!isThere("ipmitool", ["-V"])) return "SKIPPED: ipmitool is not installed (Debian package ipmitool)";
  return isThere("ipmi_sim", ["-?"]) ? null : "SKIPPED: ipmi_sim is not installed (Debian package openipmi)";
})();

export const IPMI_USER = "maas";
export const IPMI_PASS = "s3cret-bmc";

interface BmcCall {
  readonly power?: "on" | "off";
  readonly boot?: string;
}

export interface IpmiSim {
  readonly port: number;
  calls(): BmcCall[];
  power(): "on" | "off";
  setPower(power: "on" | "off"): void;
  close(): Promise<void>;
}

const MACHINE = [
  "mc_setbmc 0x20",
  "mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr",
  "sel_enable 0x20 1000 0x0a",
  "mc_enable 0x20",
];
const AUTHS = ["callback", "user", "operator", "admin"].map((one) => `    allowed_auths_${one} none md2 md5 straight`);

const lanConf = (folder: string, { address, port }: { address: string; port: number }): string =>
  [
    'name "host"',
    "set_working_mc 0x20",
    "  startlan 1",
    `    addr ${address} ${port}`,
    "    priv_limit admin",
    ...AUTHS,
    "    guid a123456789abcdefa123456789abcdef",
    `    lan_config_program "${folder}/lan"`,
    "  endlan",
    `  chassis_control "${folder}/chassis"`,
    '  user 1 true "" "none" user 10 none md2 md5 straight',
    `  user 2 true "${IPMI_USER}" "${IPMI_PASS}" admin 10 none md2 md5 straight`,
  ].join("\n");

/**
 * The shell script by which ipmi_sim reads and changes the simulated host's power and boot device. Each time a client switches the simulated host on
 * with the boot device PXE, the script of ipmi_sim runs the command `onNetworkBoot`.
 */
const chassis = (folder: string, onNetworkBoot: string): string => `#!/bin/sh
cd ${folder} || exit 1
do=$1; shift
while [ $# -gt 0 ]; do
  case "$do $1" in
    "get power") echo "power:$(cat power)"; shift ;;
    "get boot") echo "boot:$(cat boot)"; shift ;;
    "set power")
      echo "power $2" >> calls
      was=$(cat power); echo "$2" > power
      if [ "$was $2 $(cat boot)" = "0 1 pxe" ]; then
        echo none > boot
        (${onNetworkBoot}) </dev/null >/dev/null 2>&1 &
      fi
      shift 2 ;;
    "set boot") echo "boot $2" >> calls; echo "$2" > boot; shift 2 ;;
    *) shift ;;
  esac
done
exit 0
`;

export async function startIpmiSim(options: { address?: string; onNetworkBoot?: string } = {}): Promise<IpmiSim> {
  const address = options.address ?? "127.0.0.1";
  const folder = mkdtempSync(join(tmpdir(), "muster-bmc-"));
  const file = (name: string, text: string, mode = 0o600): void => writeFileSync(join(folder, name), text, { mode });
  const port = await freePort();
  file("lan.conf", `${lanConf(folder, { address, port })}\n`);
  file("machine", `${MACHINE.join("\n")}\n`);
  file("lan", "#!/bin/sh\nexit 0\n", 0o700);
  file("chassis", chassis(folder, options.onNetworkBoot ?? ":"), 0o700);
  file("power", "1\n");
  file("boot", "none\n");
  const files = ["-c", join(folder, "lan.conf"), "-f", join(folder, "machine"), "-s", folder];
  const child = spawn("ipmi_sim", ["-n", ...files], { stdio: "ignore" });
  const ended = once(child, "exit");
  const close = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const to = ["-I", "lanplus", "-C", "3", "-H", address, "-p", String(port), "-U", IPMI_USER, "-P", IPMI_PASS];
  await until(
    "the simulated BMC to answer",
    async () => (await execa("ipmitool", [...to, "-N", "1", "-R", "1", "chassis", "power", "status"])).exitCode === 0,
  ).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    port,
    calls: () => {
      const path = join(folder, "calls");
      const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
      return lines.map((line) => {
        const [what, value = ""] = line.split(" ");
        return what === "power" ? { power: value === "1" ? "on" : "off" } : { boot: value };
      });
    },
    power: () => (readFileSync(join(folder, "power"), "utf8").trim() === "1" ? "on" : "off"),
    setPower: (power) => file("power", power === "on" ? "1\n" : "0\n"),
    close,
  };
}
