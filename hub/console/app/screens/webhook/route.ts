import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf } from "../../frame/search.ts";

export const DELIVERY_STATES = everyValue<Answer<"listWebhookDeliveries">["items"][number]["state"]>({
  pending: true,
  delivered: true,
  dead: true,
});

export const webhookRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/webhooks/$id",
  validateSearch: searchOf({ state: oneOf(DELIVERY_STATES) }),
});
