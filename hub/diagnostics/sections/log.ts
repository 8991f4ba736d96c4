import { z } from "zod";
import { Json } from "../../../shared/json.ts";
import { hubSection } from "../section.ts";

export const log = hubSection({
  name: "log",
  about: "The last lines of this hub's log, info and above, oldest first",
  data: z.strictObject({ lines: z.array(z.record(z.string(), Json)) }),
  read: (facts) => {
    const { lines, dropped } = facts.log.read();
    const of = lines.length + dropped;
    return {
      data: { lines: [...lines] },
      leftOut: dropped === 0 ? [] : [{ list: "lines", shown: lines.length, of }],
    };
  },
});
