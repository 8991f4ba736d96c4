import { z } from "zod";
import { hubSection } from "../section.ts";

const Setting = z.strictObject({
  name: z.string(),
  value: z.union([z.string(), z.number()]).nullable(),
  given: z.boolean(),
});

export const settings = hubSection({
  name: "settings",
  about: "The settings in force; a secret shows only whether it is set",
  data: z.array(Setting),
  read: (facts) => ({ data: [...facts.settings] }),
});
