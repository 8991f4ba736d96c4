import { defineConfig } from "drizzle-kit";

/** `npm run db:generate` writes the next database migration, which a person must review. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./hub/db/schema/index.ts",
  out: "./hub/db/migrations",
});
