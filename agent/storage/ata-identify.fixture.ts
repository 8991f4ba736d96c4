export function istdout({
  serial = "S1",
  model = "M",
  firmware = "F",
  word59 = 0xf000,
  word89 = 0,
  word90 = 0,
  word128 = 0x0021,
}: {
  readonly serial?: string;
  readonly model?: string;
  readonly firmware?: string;
  readonly word59?: number;
  readonly word89?: number;
  readonly word90?: number;
  readonly word128?: number;
}): string {
  const words = new Array<number>(256).fill(0);
  const write = (text: string, from: number, count: number): void => {
    const padded = text.padEnd(2 * count);
    for (let index = 0; index < count; index += 1)
      words[from + index] = (padded.charCodeAt(2 * index) << 8) | padded.charCodeAt(2 * index + 1);
  };
  write(serial, 10, 10);
  write(firmware, 23, 4);
  write(model, 27, 20);
  words[59] = word59;
  words[89] = word89;
  words[90] = word90;
  words[128] = word128;
  const lines = Array.from({ length: 32 }, (_, line) =>
    words
      .slice(8 * line, 8 * line + 8)
      .map((word) => word.toString(16).padStart(4, "0"))
      .join(" "),
  );
  return `\n/dev/sda:\n${lines.join("\n")}\n`;
}
