import { counter } from "./family.ts";

export const webhookAttempts = counter({
  name: "muster_webhook_attempts_total",
  help: "Attempts to deliver an event to a webhook: delivered, to be tried again (retry), given up (dead), or put back because the hub stopped or could not read the webhook's secret.",
  labels: { outcome: ["delivered", "retry", "dead", "put_back"] },
});
