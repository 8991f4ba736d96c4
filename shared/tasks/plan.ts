import { z } from "zod";

const PlanInput = z.object({ plan: z.literal(true) });
const PlanResult = z.object({ steps: z.array(z.object({ outcome: z.literal("planned") })).min(1) });

/** Whether an order's input asks for a plan: the agent says what the task would do, and changes nothing on the host. */
export const asksForPlan = (input: unknown): boolean => PlanInput.safeParse(input).success;

/** Whether a task's result is a plan, which says what the task would do. */
export const isPlanResult = (result: unknown): boolean => PlanResult.safeParse(result).success;
