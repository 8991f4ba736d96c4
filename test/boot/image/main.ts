import { bootImage } from "./boot-image.ts";

/** The program of `npm run boot:image`. The program builds the boot suite's image if the image is missing, and prints the image's path. */
process.stdout.write(`${(await bootImage()).folder}\n`);
