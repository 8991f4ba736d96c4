import { z } from "zod";

const MOST_VALUES = 20;

/**
 * A query parameter with one value or several values, which commas separate. If a query parameter of a list has several values, the list contains the
 * objects that have one of them.
 */
export const oneOrMore = <T>(item: z.ZodType<T, string>, what: string) =>
  z
    .string()
    .min(1)
    .max(1024)
    .transform((text, ctx): T[] => {
      const given = text.split(",");
      if (given.length > MOST_VALUES)
        ctx.addIssue({ code: "custom", message: `has ${given.length} values, and at most ${MOST_VALUES} are allowed` });
      return given.flatMap((value) => {
        const { success, data, error } = item.safeParse(value);
        if (success) return [data];
        ctx.addIssue({ code: "custom", message: `${value}: ${error.issues[0]?.message}` });
        return [];
      });
    })
    .describe(`${what}; several are separated by commas`);

/** A query parameter that is true or false. */
export const flag = (what: string) => z.enum(["true", "false"]).describe(what);
