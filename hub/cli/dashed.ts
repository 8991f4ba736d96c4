/** The name of an operation or of a field as a command or a flag: `listNodes` becomes `list-nodes`, and `site_id` becomes `site-id`. */
export const dashed = (name: string): string =>
  name.replaceAll("_", "-").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
