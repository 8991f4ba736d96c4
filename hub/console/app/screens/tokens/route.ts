import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

export const ROLES = everyValue<Answer<"listTokens">["items"][number]["role"]>({
  viewer: true,
  operator: true,
  admin: true,
  provisioner: true,
  tenant: true,
  repair: true,
});

/** The filters of the list of tokens, named as in the API. */
export const tokensRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/tokens",
  validateSearch: searchOf({ name: text(63), role: oneOf(ROLES) }),
});
