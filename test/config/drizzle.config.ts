import { defineConfig } from "drizzle-kit";

/** `npm run db:generate` writes the next migration; a person then reads it. Paths count from the repository's root. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./hub/db/schema/index.ts",
  out: "./hub/db/migrations",
});
