const WEKA_FILE_SYSTEM = "wekafs";

/** What the removal of a tenant's lines from /etc/fstab leaves and removes. */
export interface FstabEdit {
  readonly text: string;
  readonly removed: number;
  /** How many lines of Weka stay, because their mount point is outside the prefixes. */
  readonly kept: number;
}

/** Removes the lines of Weka file systems that are mounted below one of the prefixes. All other lines stay byte by byte. */
export function withoutWekaLines(fstab: string, prefixes: readonly string[]): FstabEdit {
  const isBelow = (point: string): boolean => prefixes.some((one) => point === one || point.startsWith(`${one}/`));
  const weka = (line: string): string | null => {
    const [source = "", point = "", type] = line.trim().split(/\s+/);
    return source.startsWith("#") || type !== WEKA_FILE_SYSTEM ? null : point;
  };
  const lines = fstab.split("\n");
  const left = lines.filter((line) => {
    const point = weka(line);
    return point === null || point.includes("/../") || !isBelow(point);
  });
  return {
    text: left.join("\n"),
    removed: lines.length - left.length,
    kept: left.filter((line) => weka(line) !== null).length,
  };
}
