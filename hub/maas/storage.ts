import { z } from "zod";
import type { Transport } from "./http.ts";
import { machinePath } from "./machines.ts";
import type { MaasPort } from "./port.ts";
import { BlockDevice } from "./schemas.ts";

type Storage = Pick<MaasPort, "blockDevices" | "setBootDisk" | "setFlatStorageLayout">;

export function storage(http: Transport): Storage {
  const devices = (systemId: string): string => `nodes/${encodeURIComponent(systemId)}/blockdevices/`;
  return {
    blockDevices: (systemId) => http.json({ method: "GET", path: devices(systemId) }, z.array(BlockDevice)),
    setBootDisk: async (systemId, deviceId) =>
      void (await http.text({
        method: "POST",
        path: `${devices(systemId)}${deviceId}/`,
        op: "set_boot_disk",
        form: {},
      })),
    setFlatStorageLayout: async (systemId, rootDeviceId) =>
      void (await http.text({
        method: "POST",
        path: machinePath(systemId),
        op: "set_storage_layout",
        form: { storage_layout: "flat", root_device: rootDeviceId },
      })),
  };
}
