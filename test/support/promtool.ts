import { execaSync } from "execa";

/** True if Prometheus's program promtool is installed here. Debian has it in the package `prometheus`; `.ci/run` fetches it without the service. */
export const hasPromtool = execaSync("promtool", ["--version"], { reject: false }).exitCode === 0;

export const WITHOUT_PROMTOOL = "SKIPPED where promtool is not installed";
