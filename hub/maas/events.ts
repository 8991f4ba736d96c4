import type { Transport } from "./http.ts";
import type { MaasPort } from "./port.ts";
import { Events } from "./schemas.ts";

type EventsPart = Pick<MaasPort, "events" | "machineEvents">;

export function events(http: Transport): EventsPart {
  const query = (fields: Readonly<Record<string, string>>) =>
    http.json({ method: "GET", path: "events/", op: "query", query: fields }, Events);
  return {
    events: ({ after, limit }) =>
      query({ level: "DEBUG", limit: String(limit), ...(after === undefined ? {} : { after: String(after) }) }),
    machineEvents: (systemId, { limit, level }) => query({ id: systemId, level, limit: String(limit) }),
  };
}
