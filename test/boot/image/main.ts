import { bootImage } from "./boot-image.ts";

/** `npm run boot:image`: builds the boot suite's image, if it is not there, and says where it is. */
process.stdout.write(`${(await bootImage()).folder}\n`);
