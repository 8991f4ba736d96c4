import type { Transport } from "./http.ts";
import { machinePath } from "./machines.ts";
import type { MaasPort } from "./port.ts";
import { Machine } from "./schemas.ts";

type Deploy = Pick<MaasPort, "commission" | "abort" | "deploy" | "release" | "overrideFailedTesting">;

/**
 * MAAS takes a list of scripts as one text in which commas separate the names. The hub leaves out an empty list of scripts, because an empty text has
 * a meaning of its own in MAAS (maas 2.5).
 */
const named = (field: string, scripts: readonly string[]): Record<string, string> =>
  scripts.length === 0 ? {} : { [field]: scripts.join(",") };

/** The calls to MAAS that change a machine's status, each of which may wait for the machine's BMC. */
export function deploy(http: Transport): Deploy {
  const post = (systemId: string, op: string, form: Readonly<Record<string, string | boolean | number>> = {}) =>
    http.json({ method: "POST", path: machinePath(systemId), op, form, slow: true }, Machine);
  return {
    // Without `skip_bmc_config` MAAS would replace the BMC's credentials by its own (maas 2.5).
    commission: (systemId, scripts) =>
      post(systemId, "commission", {
        enable_ssh: 1,
        skip_bmc_config: 1,
        ...named("commissioning_scripts", scripts?.commissioning ?? []),
        ...named("testing_scripts", scripts?.testing ?? []),
      }),
    abort: (systemId, comment) => post(systemId, "abort", { comment }),
    deploy: (systemId, input) =>
      http.json(
        {
          method: "POST",
          path: machinePath(systemId),
          op: "deploy",
          slow: true,
          // MAAS does not remember `enable_hw_sync`, so each deploy call sends it (maas 2.8).
          form: {
            distro_series: input.distroSeries,
            user_data: input.userDataBase64,
            enable_hw_sync: input.enableHwSync,
            comment: input.comment,
          },
        },
        Machine,
      ),
    release: (systemId, input) =>
      post(systemId, "release", {
        comment: input.comment,
        ...(input.erase === undefined
          ? {}
          : {
              erase: true,
              ...(input.erase === "quick" ? { quick_erase: true } : {}),
              // Without `quick_erase` MAAS before 3.5 reads its own setting, which may allow a quick erase in place of the secure erase.
              ...(input.erase === "secure" ? { secure_erase: true, quick_erase: false } : {}),
            }),
      }),
    overrideFailedTesting: (systemId) => post(systemId, "override_failed_testing"),
  };
}
