import { z } from "zod";

export const ConditionStatus = z.enum(["True", "False", "Unknown"]);
export type ConditionStatus = z.output<typeof ConditionStatus>;

/** `reason` is a CamelCase word for programs, `message` a sentence for people (as Kubernetes conditions). */
export const ReportedCondition = z.strictObject({
  type: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[a-z][a-z0-9]*(\.[a-z0-9_]+)+$/),
  status: ConditionStatus,
  reason: z.string().min(1).max(64),
  message: z.string().max(1024),
  observed_at: z.iso.datetime({ offset: true }),
});
export type ReportedCondition = z.output<typeof ReportedCondition>;

/** One readiness signal: idempotent by `signal_id`, bound to a provisioning `generation`; an older generation is kept, never applied. */
export const ReadinessSignal = z.strictObject({
  signal_id: z.uuid(),
  generation: z.int().min(0),
  boot_id: z.string().min(1).max(64),
  conditions: z.array(ReportedCondition).min(1).max(32),
});
export type ReadinessSignal = z.output<typeof ReadinessSignal>;
