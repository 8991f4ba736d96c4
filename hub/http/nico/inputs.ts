import type { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { SiteId } from "../../../shared/ids.ts";
import { parse } from "../problem.ts";

/** Returns the id in the path of a request. NICo answers 400 to an id that is no UUID. */
export const idIn = <T extends z.ZodType>(params: Readonly<Record<string, string>>, type: T): z.output<T> =>
  parse(type, params["id"], "path");

/** Returns the site that the parameter `siteId` of the request's query names; undefined without this parameter. */
export const siteIn = (query: Readonly<Record<string, string>>): SiteId | undefined =>
  query["siteId"] === undefined ? undefined : parse(SiteId, query["siteId"], "query");

const DEFAULT_SIZE = 20;
const MOST_ON_A_PAGE = 100;

function numberIn(query: Readonly<Record<string, string>>, name: string, most: number, otherwise: number): number {
  const text = query[name];
  if (text === undefined || text === "") return otherwise;
  const value = /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= most) return value;
  throw new ApiError("validation_failed", `${name} must be a whole number from 1 to ${most}, not ${text}.`, {
    errors: [{ pointer: `/${name}`, message: `must be from 1 to ${most}` }],
  });
}

/** NICo's pages have numbers from 1 on, and 20 objects unless the client asks for another size up to 100. */
export function pageIn(query: Readonly<Record<string, string>>) {
  const size = numberIn(query, "pageSize", MOST_ON_A_PAGE, DEFAULT_SIZE);
  const number = numberIn(query, "pageNumber", 1_000_000, 1);
  return { number, size, limit: size, offset: (number - 1) * size };
}
