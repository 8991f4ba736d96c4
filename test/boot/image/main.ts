import { bootImage } from "./boot-image.ts";

/** `npm run boot:image`: builds the boot suite's image when it is missing, and prints its path. */
process.stdout.write(`${(await bootImage()).folder}\n`);
