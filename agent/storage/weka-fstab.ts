const WEKA_FILE_SYSTEM = "wekafs";

export interface FstabEdit {
  readonly text: string;
  readonly removed: number;
  readonly kept: number;
}

/**
 * Removes the lines of /etc/fstab that mount a Weka file system below one of `prefixes`. `withoutWekaLines` keeps every other line of /etc/fstab byte
 * for byte.
 */
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
