/**
 * Runs NVIDIA's suite ai-cloud-validation, unmodified, against a hub with a simulated site (docs/nico.md): first with NVIDIA's provider for NICo against
 * the routes in NICo's form, then its neutral suites with our own provider against Muster's own API. The site is the demo's: its first host has had a
 * tenant, and gets another one. The exit status is 0 if every check passed or was skipped by the suite, 1 otherwise, and 2 if the suite is not there.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  addHostAddresses,
  type DemoSite,
  giveToTenant,
  hostsOf,
  placeHosts,
  removeHostAddresses,
  startDemo,
  stopDemo,
  takeBack,
} from "./demo-site.ts";
import { configOf } from "./provider/config.ts";
import { type Check, findSuite, NICO_CONFIG, printChecks, runSuite, type Suite } from "./suite.ts";

const ORG = "acme";
/** Checks that a site without DPUs and without a reader of BMC sensors cannot pass, and that fail in place of being skipped. */
const LEFT_OUT = ["--exclude-label", "dpu", "--", "-k", "not OobFailureDetectionCheck"];
/** Checks that need an SSH server at the address of a host. */
const NEED_SSH = "BmHostStartedCheck or BmHostRebootedCheck or BmHostPowerCycledCheck";

async function runNico(suite: Suite, { api, tokenFile }: DemoSite, siteId: string): Promise<boolean> {
  const environment = {
    NICO_API_BASE: `${api.url}/v2/org`,
    NICO_ORGANIZATION: ORG,
    NICO_SITE_ID: siteId,
    NICO_API_NAME: "nico",
    NICO_BEARER_TOKEN: readFileSync(tokenFile, "utf8").trim(),
  };
  const checks = [
    ...(await runSuite(suite, `${NICO_CONFIG}/control-plane.yaml`, environment)),
    ...(await runSuite(suite, `${NICO_CONFIG}/bare_metal.yaml`, environment, LEFT_OUT)),
  ];
  return printChecks("NVIDIA's provider for NICo", checks, LEFT_OUT.join(" "));
}

/** The suites act on machines of the site: the first host gets a tenant, two others leave for maintenance and repair, and then a rack leaves. */
async function runNeutral(suite: Suite, { api, tokenFile }: DemoSite, folder: string, ssh: boolean): Promise<boolean> {
  const key = join(folder, "tenant-key");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "validation", "-f", key]);
  const hosts = await hostsOf(api);
  const [first, maintained, third, replaced] = hosts;
  const settings = {
    machine_id: maintained?.id ?? "",
    replaced_machine_id: replaced?.id ?? "",
    rack_id: third?.location.rack ?? "",
  };
  const environment = {
    MUSTER_URL: api.url,
    MUSTER_TOKEN_FILE: tokenFile,
    MUSTER_VALIDATION_HOST: first?.hostname,
    MUSTER_VALIDATION_KEY: key,
  };
  const left = ssh ? [] : ["--", "-k", `not (${NEED_SSH})`];
  const checks: Check[] = [];
  for (const name of ["control-plane", "bare_metal"] as const) {
    const config = join(folder, `${name}.yaml`);
    writeFileSync(config, configOf(name, suite.source, settings));
    checks.push(...(await runSuite(suite, config, environment, name === "bare_metal" ? left : [])));
  }
  return printChecks("Our provider for the neutral suites", checks, `the labels ssh and dpu ${left.join(" ")}`);
}

async function main(): Promise<number> {
  const suite = findSuite();
  if (suite === null) {
    process.stdout.write(
      "Not run: NVIDIA's suite is not here. Set MUSTER_TEST_VALIDATION_SUITE to its checkout and MUSTER_TEST_VALIDATION_PYTHON to a Python with its packages.\n",
    );
    return 2;
  }
  const folder = join(process.cwd(), ".muster", "validation");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const ssh = addHostAddresses();
  if (!ssh)
    process.stdout.write("The hosts answer no SSH, because this user may not add addresses to this computer.\n");
  const site = await startDemo(folder, ORG, ssh);
  try {
    await placeHosts(site.api);
    const tenancy = await giveToTenant(site.api, ORG);
    const siteId = (await site.api.node(tenancy.nodeId)).site_id ?? "";
    const nico = await runNico(suite, site, siteId);
    await takeBack(site.api, tenancy);
    const neutral = await runNeutral(suite, site, folder, ssh);
    return nico && neutral ? 0 : 1;
  } finally {
    await stopDemo(site);
    if (ssh) removeHostAddresses();
  }
}

process.exit(await main());
