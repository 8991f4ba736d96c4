import { hostFault } from "../outbound/forbidden-address.ts";

/**
 * Returns the reason why a webhook may not have the given URL, or null for an allowed URL. `addressFault` does not resolve the URL's host name,
 * because the name's addresses may change. The hub checks the addresses of a webhook's host name at each connection.
 */
export function addressFault(url: URL): string | null {
  const fault = hostFault(url);
  if (fault !== null) return fault;
  const port = url.port === "" ? null : Number(url.port);
  return port === null || port === 80 || port === 443 || port >= 1024
    ? null
    : "must have the port 80, 443, or 1024 and above; other ports belong to services that do not speak HTTP";
}
