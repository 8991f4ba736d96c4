import { z } from "zod";

/** PostgreSQL's `integer` ends here. Every whole number of a border that reaches such a column is one of these, or has a smaller bound of its own. */
export const INT4_MAX = 2_147_483_647;
export const Int4 = z.int().min(0).max(INT4_MAX);
export const PositiveInt4 = z.int().min(1).max(INT4_MAX);
