import { z } from "zod";

/**
 * The largest value of PostgreSQL's type `integer`. Every number for a column of the type `integer` has `INT4_MAX` or a smaller number as its limit.
 */
export const INT4_MAX = 2_147_483_647;
export const Int4 = z.int().min(0).max(INT4_MAX);
export const PositiveInt4 = z.int().min(1).max(INT4_MAX);
