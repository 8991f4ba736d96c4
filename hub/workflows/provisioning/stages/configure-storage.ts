import { failure } from "../../../../shared/failures.ts";
import type { MaasBlockDevice } from "../../../maas/port.ts";
import type { Failed } from "../../engine/stage.ts";
import { UPSTREAM_RETRY } from "../../services.ts";
import { findBootDisk } from "../boot-disk.ts";
import { maasOf, type ProvisionContext, type ProvisionStage, profileTimeout, systemIdOf } from "../context.ts";
import { notEditable } from "../editable.ts";
import type { ProvisionState } from "../provision-state.ts";

/**
 * MAAS keeps a machine's boot disk and storage layout at a release, and drops both at a commissioning. The stage `configure_storage` always sets both
 * the boot disk and the storage layout (decision M5).
 */
export const configureStorage: ProvisionStage<"configure_storage"> = {
  name: "configure_storage",
  title: "Make the BOSS card the boot disk, with a flat layout",
  reentry: { rule: "from_top" },
  timeout: profileTimeout("configureTimeoutSeconds", "upstream_transient", "maas_timeout", "Configuring the storage"),
  retry: UPSTREAM_RETRY,
  async run(context) {
    const other = await notEditable("configure_storage", context);
    if (other !== null) return other;
    const maas = await maasOf(context);
    const systemId = systemIdOf(context);
    const disks = await maas.blockDevices(systemId);
    const search = findBootDisk(disks, context.profile.bootDiskPattern);
    if (search.kind === "missing") return noBootDisk(context, disks);
    if (search.kind === "endless") return endlessPattern(context, disks);
    if (search.kind === "ambiguous") return manyBootDisks(context, search.disks);
    await maas.setBootDisk(systemId, search.disk.id);
    await maas.setFlatStorageLayout(systemId, search.disk.id);
    return {
      kind: "done",
      message: `Boot disk ${describe(search.disk)}`,
      patch: { boss_disk_id: search.disk.id },
      details: { boot_disk_id: search.disk.id, boot_disk_model: search.disk.model },
    };
  },
};

const describe = (disk: MaasBlockDevice): string => `${disk.name} (${disk.model || "no model"})`;

function noBootDisk({ profile, host }: ProvisionContext, disks: readonly MaasBlockDevice[]): Failed<ProvisionState> {
  const message = `No disk of ${host.hostname} matches the boot disk pattern "${profile.bootDiskPattern}". Look at the disks in MAAS; correct the hardware or the profile, then resume.`;
  const evidence = { pattern: profile.bootDiskPattern, disks: disks.slice(0, 32).map(describe) };
  return { kind: "failed", failure: failure("hardware_mismatch", "boss_disk_missing", message, evidence) };
}

function endlessPattern(
  { profile, host }: ProvisionContext,
  disks: readonly MaasBlockDevice[],
): Failed<ProvisionState> {
  const message = `Matching the boot disk pattern "${profile.bootDiskPattern}" with the disks of ${host.hostname} took too long, because the pattern has a repetition within a repetition. Simplify the pattern in the profile, then resume.`;
  const evidence = { pattern: profile.bootDiskPattern, disks: disks.slice(0, 32).map(describe) };
  return { kind: "failed", failure: failure("hardware_mismatch", "boss_disk_missing", message, evidence) };
}

function manyBootDisks({ profile, host }: ProvisionContext, disks: readonly MaasBlockDevice[]): Failed<ProvisionState> {
  const message = `${disks.length} disks of ${host.hostname} match the boot disk pattern "${profile.bootDiskPattern}"; the wrong one would be erased. Make the pattern precise, then resume.`;
  const evidence = { pattern: profile.bootDiskPattern, disks: disks.slice(0, 32).map(describe) };
  return { kind: "failed", failure: failure("hardware_mismatch", "boss_disk_ambiguous", message, evidence) };
}
