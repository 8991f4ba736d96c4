import type { SiteProbe } from "../../shared/api/sites.ts";
import { MaasError, type MaasPort } from "./port.ts";

type Check = SiteProbe["checks"][number];

/**
 * Is this MAAS usable with this token? Proves the token with whoami, since `version/` answers anybody (decision M1), then looks at what will
 * bite later. Never throws for what MAAS says: a refused token or an unreachable region is a failed check with its reason.
 */
export async function probeMaas(maas: MaasPort, wanted: { images: readonly string[] }): Promise<SiteProbe> {
  const probe: SiteProbe = {
    ok: false,
    maas_version: null,
    username: null,
    is_superuser: null,
    rack_controllers: [],
    checks: [],
  };
  const checks: Check[] = [];
  const add = (name: string, status: Check["status"], message: string): void =>
    void checks.push({ name, status, message });
  try {
    probe.maas_version = (await maas.version()).version;
    add("reachable", "ok", `MAAS ${probe.maas_version} answers.`);
    const who = await maas.whoami();
    probe.username = who.username;
    probe.is_superuser = who.isSuperuser;
    add("token", "ok", `The token is ${who.username}'s.`);
    add(
      "rights",
      who.isSuperuser ? "ok" : "failed",
      who.isSuperuser
        ? "The user is an administrator."
        : `${who.username} is no administrator; commissioning and storage need one. Use a token of an administrator.`,
    );
    probe.rack_controllers = (await maas.rackControllers()).map((rack) => ({
      system_id: rack.systemId,
      hostname: rack.hostname,
    }));
    add(
      "racks",
      probe.rack_controllers.length > 0 ? "ok" : "failed",
      probe.rack_controllers.length > 0
        ? `${probe.rack_controllers.length} rack controllers.`
        : "No rack controller: nothing can be powered or booted. Connect one.",
    );
    await checkImages(maas, wanted.images, add);
    await checkSettings(maas, add);
  } catch (error) {
    if (!(error instanceof MaasError)) throw error;
    add(error.code === "unauthorized" ? "token" : "reachable", "failed", error.message);
  }
  return { ...probe, ok: checks.every((check) => check.status !== "failed"), checks };
}

async function checkImages(
  maas: MaasPort,
  images: readonly string[],
  add: (name: string, status: Check["status"], message: string) => void,
): Promise<void> {
  const present = new Set((await maas.bootResources()).map((resource) => resource.name));
  for (const image of images) {
    add(
      `image ${image}`,
      present.has(image) ? "ok" : "warning",
      present.has(image)
        ? "Synced."
        : `MAAS has no boot image ${image}; a deploy of it will be refused until it is synced.`,
    );
  }
}

/** Settings of the region that change what a release or a deploy does behind our back (contract 2.9, 4.1). */
async function checkSettings(
  maas: MaasPort,
  add: (name: string, status: Check["status"], message: string) => void,
): Promise<void> {
  const erases = (await maas.getConfig("enable_disk_erasing_on_release")) === true;
  add(
    "enable_disk_erasing_on_release",
    erases ? "warning" : "ok",
    erases
      ? "Every release erases the disks, also where none was asked for; releases take long."
      : "Releases erase only when asked to.",
  );
  const interval = await maas.getConfig("hardware_sync_interval");
  add(
    "hardware_sync_interval",
    "ok",
    `Hardware sync every ${typeof interval === "string" ? interval : "unknown interval"}.`,
  );
}
