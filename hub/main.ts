/**
 * The hub's program. Without arguments the program runs a hub, and with arguments it runs a command such as `copy-secrets`. The program loads only
 * the modules of the hub or of the command, because the modules of a hub take longer to load than most commands take to run.
 */
// Node's diagnostic reports leave out the environment variables. Operators pass diagnostic reports on, and the environment variable DATABASE_URL may
// hold a password.
if (process.report !== undefined) process.report.excludeEnv = true;
const words = process.argv.slice(2);
if (words.length === 0) await (await import("./startup/serve.ts")).serve();
else await (await import("./startup/run-command.ts")).runWordsAndExit(words);
