/** `npm run check:citations` prints each citation and link that leads nowhere, and fails if it finds any. */
import { repositoryOffences, repositoryTexts } from "./repository.ts";

const texts = repositoryTexts();
const offences = repositoryOffences(texts);
for (const { path, line, what } of offences) process.stdout.write(`${path}:${line}: ${what}\n`);
process.stdout.write(`${texts.length} files, ${offences.length} citations or links that lead nowhere\n`);
process.exitCode = offences.length === 0 ? 0 : 1;
