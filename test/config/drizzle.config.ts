import { defineConfig } from "drizzle-kit";

/** Configures `npm run db:generate`, which writes the next database migration for a person to review. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./hub/db/schema/index.ts",
  out: "./hub/db/migrations",
});
