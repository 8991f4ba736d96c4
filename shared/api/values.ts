import { z } from "zod";

/** A hostname without its domain, as MAAS accepts it: lower case, no dots, no underscore (maas 2.2). */
export const Hostname = z
  .string()
  .regex(
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
    "must be a DNS label: lower-case letters, digits and hyphens, 63 characters at most",
  );
/** The beginning of hostnames, for example a rack's name if the names of all its hosts begin with it. */
export const HostnamePrefix = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "must be the beginning of a hostname: lower-case letters, digits and hyphens");
/** An IPv6 address is written as the URL parser writes it, so that equal addresses have equal texts. */
export const IpAddress = z.union([
  z.ipv4(),
  z.ipv6().overwrite((address) => {
    const url = `http://[${address}]`;
    return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : address;
  }),
]);
export const MacAddress = z
  .string()
  .regex(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/, "must be a MAC address in lower case with colons");
/** Linux accepts interface names of at most 15 bytes without slash and white space. */
export const InterfaceName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/, "must be a Linux interface name");
export const Ipv4Cidr = z.cidrv4();
export const Timestamp = z.iso.datetime({ offset: true });
export const LinuxUserName = z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, "must be a Linux user name");
/** A profile gives each duration as a number of seconds. */
export const Seconds = z
  .int()
  .min(1)
  .max(7 * 86_400);
