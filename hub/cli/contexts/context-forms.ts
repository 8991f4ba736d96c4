import { z } from "zod";

const Text = z.string().min(1).max(4_096);
export const ContextName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
    "must begin with a letter or digit, and have letters, digits, dots, dashes and underscores",
  );
export const HubUrl = z.url({ protocol: /^https?$/ }).max(2_048);
const Context = z.strictObject({ url: HubUrl, ca_file: Text.optional(), token_file: Text.optional() });
export type Context = z.output<typeof Context>;
export const Contexts = z.strictObject({
  version: z.literal(1),
  /** The name of the context that a command uses if neither a flag nor the environment names a hub or a context. */
  current: z.string().nullable(),
  contexts: z.record(ContextName, Context),
});
export type Contexts = z.output<typeof Contexts>;
