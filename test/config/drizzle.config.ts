import { defineConfig } from "drizzle-kit";

/** `npm run db:generate` writes the next migration, which a person then reviews. Paths are relative to the repository's root. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./hub/db/schema/index.ts",
  out: "./hub/db/migrations",
});
