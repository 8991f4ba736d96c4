import { createRoute } from "@tanstack/react-router";
import { rootRoute } from "../../frame/root-route.ts";
import { oneOf, searchOf, several, text } from "../../frame/search.ts";

/**
 * The filters, order and columns of the list of nodes in the URL, and its view by racks. The filters of the list of nodes are named as in the API,
 * which checks their values. Only the view by racks has the filter `no_room`.
 */
export const nodesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/nodes",
  validateSearch: searchOf({
    search: text(100),
    status: several(),
    schedulable: oneOf(["true", "false"]),
    site_id: text(36),
    sku_id: several(),
    room: text(64),
    rack: text(64),
    failure_class: several(),
    condition: text(80),
    health_override: text(63),
    address: text(64),
    hostname_prefix: text(63),
    include_deleted: oneOf(["true"]),
    sort: oneOf([
      "hostname",
      "-hostname",
      "status",
      "-status",
      "sku_id",
      "-sku_id",
      "location",
      "-location",
      "created_at",
      "-created_at",
      "updated_at",
      "-updated_at",
      "last_agent_contact_at",
      "-last_agent_contact_at",
    ]),
    columns: several(),
    view: oneOf(["racks"]),
    no_room: oneOf(["true"]),
  }),
});
