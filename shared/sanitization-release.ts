import type { Medium, RecordRelease } from "./sanitization-record.ts";

/** This file says what a sanitization record states about MAAS's release of the machine from its earlier system (decision C5). */

type Release = RecordRelease | undefined;
/**
 * The tool that a sanitization record names for a disk that MAAS erased when it released the machine. No cleaning step of the agent names `release in
 * MAAS` as its tool.
 */
const TOOL = "release in MAAS";

/**
 * Returns what a sanitization record says about a disk that no cleaning step of the agent worked on. Of a disk that no cleaning step worked on, the
 * record's `method` stays `none`, because MAAS's evidence is about the whole machine and names no technique. Without evidence of an erase by MAAS,
 * the sanitization record says nothing about the erase of a disk.
 */
export const erasedByRelease = (release: Release): Partial<Medium> =>
  release === undefined || release.evidence === "none"
    ? {}
    : {
        technique: `erase of kind ${release.erase}`,
        tool: TOOL,
        verification: "report of MAAS about the whole machine",
        verification_result: "says nothing about this single disk",
      };

export const isErasedByRelease = ({ tool }: Medium): boolean => tool === TOOL;

export const releaseClaims = (release: Release): string[] =>
  release === undefined || release.evidence === "none"
    ? []
    : [
        `The operation asked MAAS for an erase of the disks of kind ${release.erase} at the release of machine ${release.maas_system_id}, and the events of MAAS report the end of an erase for this operation.`,
      ];

const WHOLE_MACHINE =
  "The report of MAAS about the erase is about the whole machine, and does not name the kind of the erase. If a disk refuses the commands of an erase, MAAS may use a weaker technique or skip the disk, and report the same.";
const QUICK = "An erase of kind quick overwrites only the beginning and the end of a disk.";

/** Returns sentences about what MAAS's release of the machine does not show. */
export function releaseGaps(release: Release): string[] {
  if (release === undefined) return [];
  const { erase, evidence, waived_by: person } = release;
  if (erase === "none")
    return ["The operation asked MAAS for no erase of the disks, and a deploy does not overwrite the whole of a disk."];
  const quick = erase === "quick" ? [QUICK] : [];
  if (evidence !== "none") return [WHOLE_MACHINE, ...quick];
  if (release.disk_findings !== undefined)
    return [
      `The hub asked MAAS for an erase of the disks of kind ${erase}, and the disks of the new system speak against it for ${release.disk_findings.length} disks, which the member release names.`,
      ...quick,
    ];
  const why = person === null ? "" : ` A person decided by force to continue without evidence of the erase.`;
  return [
    `The hub asked MAAS for an erase of the disks of kind ${erase}, and nothing shows that MAAS erased a disk.${why}`,
  ];
}
