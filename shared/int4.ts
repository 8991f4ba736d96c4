import { z } from "zod";

/** The largest value of PostgreSQL's type `integer`. Every number for an `integer` column has the limit `INT4_MAX` or a smaller one. */
export const INT4_MAX = 2_147_483_647;
export const Int4 = z.int().min(0).max(INT4_MAX);
export const PositiveInt4 = z.int().min(1).max(INT4_MAX);
