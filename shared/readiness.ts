import { z } from "zod";
import { type ConditionSource, type ConditionTypeOf, maySay } from "./condition-types.ts";
import { Int4 } from "./int4.ts";

export const ConditionStatus = z.enum(["True", "False", "Unknown"]);
export type ConditionStatus = z.output<typeof ConditionStatus>;

/** A node's condition resembles a condition of Kubernetes: `reason` is a CamelCase word for programs, and `message` a sentence for people. */
export const ReportedCondition = z.strictObject({
  type: z
    .string()
    .min(1)
    .max(64)
    .regex(/^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$/),
  status: ConditionStatus,
  reason: z.string().min(1).max(64),
  message: z.string().max(1024),
  observed_at: z.iso.datetime({ offset: true }),
});
export type ReportedCondition = z.output<typeof ReportedCondition>;

/**
 * A readiness signal belongs to one `generation` of the node. The hub ignores a readiness signal whose `signal_id` it already knows. The hub stores a
 * readiness signal of an older generation but never applies it.
 */
export const ReadinessSignal = z.strictObject({
  signal_id: z.uuid(),
  generation: Int4,
  boot_id: z.string().min(1).max(64),
  conditions: z.array(ReportedCondition).min(1).max(32),
});
export type ReadinessSignal = z.output<typeof ReadinessSignal>;

/** A readiness signal of cloud-init or of an external provisioning system, which may not know the boot id. */
export const ForeignReadinessSignal = z.strictObject({
  ...ReadinessSignal.shape,
  boot_id: ReadinessSignal.shape.boot_id.optional(),
  conditions: z
    .array(
      z.strictObject({
        ...ReportedCondition.shape,
        type: ReportedCondition.shape.type.refine(
          (type) => maySay("external", type),
          "is not an external system's to say; report another type",
        ),
      }),
    )
    .min(1)
    .max(32),
});
export type ForeignReadinessSignal = z.output<typeof ForeignReadinessSignal>;

/**
 * The outcome `kept` means that the hub only stored the readiness signal, because it belongs to another generation than the node's present one. The
 * outcome `known` means that the hub had already accepted a readiness signal with the same id.
 */
export const SignalOutcome = z.enum(["applied", "kept", "known"]);
export type SignalOutcome = z.output<typeof SignalOutcome>;

/** The hub writes its own conditions without a readiness signal, so the hub is not among the senders of readiness signals. */
export type ReadinessSource = Exclude<ConditionSource, "hub">;

export type ConditionOf<S extends ConditionSource> = ReportedCondition & { readonly type: ConditionTypeOf<S> };
