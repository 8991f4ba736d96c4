/**
 * A process that owns the embedded database as a hub does, for tests that kill the process. The only argument of the process is a JSON object of the
 * type `EmbeddedPostgresOptions` without a log. Until it receives SIGTERM, the process writes rows and prints the number of each committed row.
 */
import { Client } from "pg";
import { z } from "zod";
import { startEmbeddedPostgres } from "../../hub/db/embedded/embedded-postgres.ts";
import { quietLog } from "./log.ts";

const Arguments = z.object({
  stateDir: z.string(),
  source: z.enum(["system", "npm"]).optional(),
  packageDir: z.string().optional(),
});

const server = await startEmbeddedPostgres({ ...Arguments.parse(JSON.parse(process.argv[2] ?? "{}")), log: quietLog });
process.stdout.write(`${JSON.stringify({ url: server.url, adopted: server.adopted, version: server.version })}\n`);

let stopping = false;
process.once("SIGTERM", () => {
  stopping = true;
});

const client = new Client({ connectionString: server.url });
client.on("error", () => undefined);
await client.connect();
await client.query("create table if not exists acknowledged (number bigint generated always as identity primary key)");
while (!stopping) {
  const { rows } = await client.query<{ number: string }>("insert into acknowledged default values returning number");
  process.stdout.write(`${rows[0]?.number}\n`);
}
await client.end();
await server.stop();
