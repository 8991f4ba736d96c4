import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { linesOf, listFolder, presences, type Reading, readText, settled, textOf, valued } from "./reading.ts";

/** Reads which layers of block devices exist, for example loop devices, device mapper, RAID, iSCSI sessions and ZFS pools. */
export function readBlockLayers(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const names: string[] = [];
    for (const device of await listFolder(join(reading.root, "sys/class/block"))) {
      const name = await layerOf(reading, device);
      if (name !== null) names.push(name);
    }
    for (const session of await listFolder(join(reading.root, "sys/class/iscsi_session")))
      names.push(`iSCSI session of ${await textOf(reading, `/sys/class/iscsi_session/${session}/targetname`)}`);
    for (const controller of await listFolder(join(reading.root, "sys/class/nvme"))) {
      const folder = `/sys/class/nvme/${controller}`;
      const transport = await textOf(reading, `${folder}/transport`);
      if (transport !== "pcie" && transport !== "")
        names.push(`NVMe over ${transport}: ${await textOf(reading, `${folder}/subsysnqn`)}`);
    }
    for (const pool of await listFolder(join(reading.root, "proc/spl/kstat/zfs")))
      if ((await textOf(reading, `/proc/spl/kstat/zfs/${pool}/state`)) !== "") names.push(`ZFS pool ${pool}`);
    return presences(reading, names);
  });
}

async function layerOf(reading: Reading, device: string): Promise<string | null> {
  const folder = `/sys/class/block/${device}`;
  if (/^loop\d+$/.test(device)) {
    const file = await textOf(reading, `${folder}/loop/backing_file`);
    return file === "" ? null : `loop device of ${file}`;
  }
  if (device.startsWith("dm-")) return `device mapper ${await textOf(reading, `${folder}/dm/name`)}`;
  if (/^md\d+$/.test(device)) {
    const state = await textOf(reading, `${folder}/md/array_state`);
    return state === "clear" || state === "" ? null : `RAID ${device} ${await textOf(reading, `${folder}/md/level`)}`;
  }
  if (/^(zram|nbd|bcache|drbd|rbd|ram)\d+$/.test(device)) {
    if (device.startsWith("ram")) return null;
    return (await textOf(reading, `${folder}/size`)) === "0" ? null : `block device ${device}`;
  }
  return null;
}

/** The entries of the residue snapshot about swap space leave out the column `used` of /proc/swaps, which changes all the time. */
export async function readSwap(reading: Reading): Promise<ResidueEntry[]> {
  const lines = linesOf(await readText(join(reading.root, "proc/swaps"))).slice(1);
  return lines.map((line) => {
    const [path, type, size] = line.split(/\s+/);
    return valued(reading, `swap on ${path}`, `${type} ${size}`);
  });
}

export async function readHugepages(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  const folder = "/sys/kernel/mm/hugepages";
  for (const size of await listFolder(join(reading.root, folder)))
    for (const file of ["nr_hugepages", "nr_overcommit_hugepages"])
      entries.push(valued(reading, `${size}/${file}`, await textOf(reading, `${folder}/${size}/${file}`)));
  for (const file of ["enabled", "defrag"]) {
    const text = await textOf(reading, `/sys/kernel/mm/transparent_hugepage/${file}`);
    if (text !== "") entries.push(valued(reading, `transparent_hugepage/${file}`, text));
  }
  return entries;
}

/** Matches shared memory files that the tools of GPU vendors make at each use. */
const OF_TOOLS = /^(rocm_smi|sem[.]rocm_smi|amd_smi|nvidia-)/;
/** The tables of /proc/sysvipc, each with the word by which the residue snapshot names the objects in it. */
const IPC_KINDS = { shm: "shared memory", sem: "semaphores", msg: "message queue" } as const;

export function readSharedMemory(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const names: string[] = [];
    for (const folder of ["/dev/shm", "/dev/mqueue", "/dev/hugepages"])
      for (const name of await listFolder(join(reading.root, folder)))
        if (!OF_TOOLS.test(name)) names.push(`${folder}/${name}`);
    for (const [file, word] of Object.entries(IPC_KINDS)) {
      const [head, ...rows] = linesOf(await readText(join(reading.root, "proc/sysvipc", file)));
      const columns = (head ?? "").split(/\s+/);
      for (const row of rows) {
        const cells = row.split(/\s+/);
        const cell = (column: string): string => cells[columns.indexOf(column)] ?? "";
        names.push(`${word} key ${cell("key")} of user ${cell("uid")}`);
      }
    }
    return presences(reading, names);
  });
}
