/**
 * The failure of an operation is shown to people who may read only the operation's site. A person who may read only one site must not learn the names
 * of another site from a failure. A person who may read all sites finds a node or operation of another site by its id.
 */
interface OfSite {
  readonly siteName: string;
}

export const siteFor = (reader: { readonly name: string }, { siteName }: OfSite): string =>
  siteName === reader.name ? `site ${siteName}` : "another site";

export const nodeFor = (
  reader: { readonly name: string },
  { id, hostname, siteName }: OfSite & { readonly id: string; readonly hostname: string },
): string => (siteName === reader.name ? `node ${hostname} (${id})` : `node ${id}`);
