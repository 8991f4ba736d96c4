import { defineConfig } from "drizzle-kit";

/**
 * `npm run db:generate` writes the next database migration, which a person must review. Paths in the configuration of Drizzle are relative to the
 * repository's root.
 */
export default defineConfig({
  dialect: "postgresql",
  schema: "./hub/db/schema/index.ts",
  out: "./hub/db/migrations",
});
