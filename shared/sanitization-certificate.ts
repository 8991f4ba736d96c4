import { z } from "zod";
import { Timestamp } from "./api/values.ts";

/** This file has the fields of a NIST SP 800-88 certificate that concern the whole host, and not one medium (decision C1). */

const Short = z.string().max(256);

/**
 * The host's location when the hub wrote the sanitization record, as operators had entered it. A part of the location, such as the rack, is null if
 * no operator had entered it.
 */
export const RecordLocation = z.strictObject({
  site: Short.nullable(),
  room: Short.nullable(),
  rack: Short.nullable(),
  unit: z.int().nullable(),
});
export type RecordLocation = z.output<typeof RecordLocation>;

/** Who cleaned the host. No person cleans the host: Muster does, by order of the person who requested the operation. */
export const RecordPerformer = z.strictObject({
  name: Short,
  title: Short,
  /** `by_order_of` is absent if the operation in the sanitization record is not the one that cleaned the host. */
  by_order_of: Short.optional(),
});

/** Who validated the cleaning: the hub, which judges the evidence by its rules for verdicts before it writes the record. */
export const RecordValidator = z.strictObject({ name: Short, title: Short, check: Short, at: Timestamp });

const SYSTEM = "automatic system";

interface Told {
  readonly hub: { readonly version: string };
  readonly rules: number;
  readonly finished_at: string;
  readonly without_turnover?: { readonly begun: object | null } | undefined;
  readonly operation: { readonly requested_by: string };
}

/** Returns who cleaned the host and who validated the cleaning. If no operation cleaned the host, the result has no `performed_by`. */
export function partiesOf({ hub, rules, finished_at: at, without_turnover: without, operation }: Told): {
  readonly performed_by?: z.output<typeof RecordPerformer>;
  readonly validated_by: z.output<typeof RecordValidator>;
} {
  const system = { name: `Muster ${hub.version}`, title: SYSTEM };
  const validated_by = { ...system, check: `rules ${rules} for the verdict of a sanitization record`, at };
  if (without === undefined) return { performed_by: { ...system, by_order_of: operation.requested_by }, validated_by };
  return without.begun === null ? { validated_by } : { performed_by: system, validated_by };
}
