import { parseArgs } from "node:util";
import { z } from "zod";
import { startMaasSimulator } from "./simulator.ts";
import { DEFAULT_API_KEY } from "./state/seed.ts";
import { bmcAddress, SITE_BMC_PASSWORD, SITE_BMC_USER } from "./state/site.ts";

/** An environment variable sets the default of each command-line flag of the simulator. */
const { values } = parseArgs({
  options: {
    port: { type: "string", default: process.env["SIM_MAAS_PORT"] ?? "0" },
    host: { type: "string", default: process.env["SIM_MAAS_HOST"] ?? "127.0.0.1" },
    version: { type: "string", default: process.env["SIM_MAAS_VERSION"] ?? "3.7.3" },
    speed: { type: "string", default: process.env["SIM_MAAS_SPEED"] ?? "1" },
    machines: { type: "string", default: process.env["SIM_MAAS_MACHINES"] ?? "8" },
    "state-file": { type: "string", default: process.env["SIM_MAAS_STATE_FILE"] ?? "" },
    "hosts-dir": { type: "string", default: process.env["SIM_MAAS_HOSTS_DIR"] ?? "" },
    "run-parts": { type: "string", default: process.env["SIM_MAAS_RUN_PARTS"] ?? "" },
    "omit-hw-sync-files": { type: "boolean", default: process.env["SIM_MAAS_OMIT_HW_SYNC_FILES"] === "true" },
    "own-linux": { type: "string", default: process.env["SIM_MAAS_OWN_LINUX"] ?? "" },
    "without-gpus": { type: "string", default: process.env["SIM_MAAS_WITHOUT_GPUS"] ?? "" },
    ssh: { type: "boolean", default: process.env["SIM_MAAS_SSH"] === "true" },
    "host-env": { type: "string", default: process.env["SIM_MAAS_HOST_ENV"] ?? "{}" },
    "api-key": { type: "string", default: process.env["SIM_MAAS_API_KEY"] ?? DEFAULT_API_KEY },
  },
});

const flags = z
  .object({
    port: z.coerce.number().int().min(0).max(65535),
    host: z.string().min(1),
    version: z.enum(["3.5.12", "3.7.3"]),
    speed: z.coerce.number().positive(),
    machines: z.coerce.number().int().min(0).max(200),
    "state-file": z.string(),
    "hosts-dir": z.string(),
    "run-parts": z.string(),
    "omit-hw-sync-files": z.boolean(),
    "own-linux": z.string(),
    "without-gpus": z.string(),
    ssh: z.boolean(),
    "host-env": z.string().transform((text) => z.record(z.string(), z.string()).parse(JSON.parse(text))),
    "api-key": z.string().regex(/^[^:]+:[^:]+:[^:]+$/),
  })
  .parse(values);

const simulator = await startMaasSimulator({
  port: flags.port,
  host: flags.host,
  version: flags.version,
  speed: flags.speed,
  machines: flags.machines,
  apiKey: flags["api-key"],
  hostEnvironment: flags["host-env"],
  omitHwSyncFiles: flags["omit-hw-sync-files"],
  ssh: flags.ssh,
  ...(flags["state-file"] === "" ? {} : { stateFile: flags["state-file"] }),
  ...(flags["hosts-dir"] === "" ? {} : { hostsDir: flags["hosts-dir"] }),
  ...(flags["own-linux"] === "" ? {} : { ownLinux: flags["own-linux"].split(",") }),
  ...(flags["without-gpus"] === "" ? {} : { withoutGpus: flags["without-gpus"].split(",") }),
  ...(flags["run-parts"] === "" ? {} : { runParts: flags["run-parts"].split(",") }),
});

const announcement = {
  listening: simulator.url,
  control: simulator.controlUrl,
  version: flags.version,
  pid: process.pid,
  bmc: {
    user: SITE_BMC_USER,
    password: SITE_BMC_PASSWORD,
    addresses: Array.from({ length: flags.machines }, (_, index) => bmcAddress(index + 1)),
  },
};
process.stdout.write(`${JSON.stringify(announcement)}\n`);

let closing = false;
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    if (closing) return;
    closing = true;
    void simulator.close().then(() => process.exit(0));
  });
}
