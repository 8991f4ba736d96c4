import { Refusal } from "../../engine/refusal.ts";
import type { EventLevel, MaasEvent } from "../../state/model.ts";
import { EVENT_LEVELS } from "../../state/model.ts";
import type { Call, Reply } from "../call.ts";
import { json } from "../call.ts";
import { mayView } from "./access.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;

function isLevel(text: string): text is EventLevel {
  return Object.hasOwn(EVENT_LEVELS, text);
}

/** MAAS's time format, for example `Fri, 20 Nov. 2026 20:35:49`: no zone, whole seconds, a point after every month except May. */
export function eventTime(ms: number): string {
  const [weekday, day, month, year, time] = new Date(ms).toUTCString().split(" ");
  return `${weekday} ${day} ${month}${month === "May" ? "" : "."} ${year} ${time}`;
}

function bound(call: Call, name: "before" | "after"): number | null {
  const text = call.query.get(name);
  if (text === null || text === "") return null;
  if (!/^\d+$/.test(text)) throw new Refusal(400, `Invalid ${name}: Please enter an integer value`);
  return Number(text);
}

function limitOf(call: Call): number {
  const text = call.query.get("limit");
  if (text === null || text === "") return DEFAULT_LIMIT;
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1)
    throw new Refusal(400, "Invalid limit: Please enter a number that is 1 or greater");
  if (limit > MAX_LIMIT)
    throw new Refusal(400, `Requested number of events ${limit} is greater than limit: ${MAX_LIMIT}`);
  return limit;
}

/** Returns one page of events, newest first. With the parameter `after`, a page has the oldest events after that id, otherwise the newest events. */
export function pageOf(
  events: readonly MaasEvent[],
  limit: number,
  before: number | null,
  after: number | null,
): MaasEvent[] {
  if (after !== null)
    return events
      .filter((event) => event.id > after)
      .slice(0, limit)
      .toReversed();
  const older = before === null ? events : events.filter((event) => event.id < before);
  return older.slice(-limit).toReversed();
}

export function query(call: Call): Reply {
  const { region } = call;
  const level = call.query.get("level") ?? "INFO";
  if (!isLevel(level)) throw new Refusal(400, `Unrecognised log level: ${level}`);
  const limit = limitOf(call);
  const [before, after] = [bound(call, "before"), bound(call, "after")];
  if (before !== null && after !== null)
    throw new Refusal(400, "There is undefined behaviour when both 'after' and 'before' are specified.");
  const ids = call.query.all("id");
  const hostnames = call.query.all("hostname");
  const machines = new Map(
    region.state.machines
      .filter((machine) => mayView(call.user, machine))
      .map((machine) => [machine.systemId, machine]),
  );
  const matching = region.state.events.filter((event) => {
    const machine = machines.get(event.systemId);
    return (
      machine !== undefined &&
      EVENT_LEVELS[event.level] >= EVENT_LEVELS[level] &&
      (ids.length === 0 || ids.includes(event.systemId)) &&
      (hostnames.length === 0 || hostnames.includes(machine.hostname))
    );
  });
  const page = pageOf(matching, limit, before, after);
  const shown = page.map((event) => ({
    username: event.username,
    node: event.systemId,
    hostname: machines.get(event.systemId)?.hostname ?? "",
    id: event.id,
    level: event.level,
    created: eventTime(event.created),
    type: event.type,
    description: event.description,
  }));
  return json({ count: shown.length, events: shown, ...uris(call, page, before, after) });
}

/** Returns the URIs of the next and the previous page of events, with the filters of the client's request. */
function uris(
  call: Call,
  page: readonly MaasEvent[],
  before: number | null,
  after: number | null,
): { next_uri: string; prev_uri: string } {
  const kept = new URLSearchParams(call.url.searchParams);
  for (const name of ["before", "after", "pool", "zone", "domain", "agent_name"]) kept.delete(name);
  const newest = page[0]?.id ?? after ?? (before === null ? 0 : before - 1);
  const oldest = page.at(-1)?.id ?? before ?? (after === null ? 1 : after + 1);
  const base = `${call.url.pathname}?${kept.toString()}`;
  return { next_uri: `${base}&after=${newest}`, prev_uri: `${base}&before=${oldest}` };
}
