import { createRoute } from "@tanstack/react-router";
import { everyValue } from "../../api/every-value.ts";
import type { Answer } from "../../api/schema.ts";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, text } from "../../frame/search.ts";

export const VERDICTS = everyValue<Answer<"listSanitizationRecords">["items"][number]["verdict"]>({
  clean: true,
  not_clean: true,
  incomplete: true,
});

/** The filters of the list of sanitization records, named as in the API. */
export const recordsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/records",
  validateSearch: searchOf({
    hostname: text(63),
    tenant: text(128),
    node_id: text(36),
    allocation_id: text(36),
    verdict: oneOf(VERDICTS),
  }),
});
