import { z } from "zod";
import { type ConditionSource, type ConditionTypeOf, maySay } from "./condition-types.ts";
import { Int4 } from "./int4.ts";

export const ConditionStatus = z.enum(["True", "False", "Unknown"]);
export type ConditionStatus = z.output<typeof ConditionStatus>;

/** A condition of a node, as in Kubernetes: its `reason` is a CamelCase word for programs, and its `message` is a sentence for people. */
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
 * A readiness signal, which belongs to one `generation` of the node. A readiness signal with a known `signal_id` changes nothing. The hub stores a
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
 * What the hub did with a readiness signal. The outcome `kept` means that the signal belongs to another generation than the node's present one, so
 * the hub only stores the signal. The outcome `known` means that the hub had already accepted a readiness signal with the signal's id.
 */
export const SignalOutcome = z.enum(["applied", "kept", "known"]);
export type SignalOutcome = z.output<typeof SignalOutcome>;

/** The sources that send readiness signals. The hub writes its own conditions directly, without a readiness signal. */
export type ReadinessSource = Exclude<ConditionSource, "hub">;

/** A condition of a type that the source `S` may report. */
export type ConditionOf<S extends ConditionSource> = ReportedCondition & { readonly type: ConditionTypeOf<S> };
