const INSTALLED =
  "asks for an installation, and Muster gives a tenant a host that is installed already, by the profile of its site";
const NETWORK = "asks for a network, and Muster changes no network";

/**
 * The fields of a NICo request for an instance that ask for what Muster cannot do, each with the reason. The hub refuses the whole request if it asks
 * for a feature of an instance that Muster lacks, and never carries out only a part of the request.
 */
const CANNOT: Readonly<Record<string, string>> = {
  operatingSystemId: INSTALLED,
  ipxeScript: INSTALLED,
  alwaysBootWithCustomIpxe: INSTALLED,
  userData: "asks the host to run user data, and the host is installed before it gets a tenant",
  phoneHomeEnabled: "asks for a call from the host's first boot, which was before the host gets a tenant",
  interfaces: NETWORK,
  secondaryVpcIds: NETWORK,
  infinibandInterfaces: NETWORK,
  infiniBandInterfaces: NETWORK,
  nvLinkInterfaces: NETWORK,
  spectrumXAttachments: NETWORK,
  networkSecurityGroupId: NETWORK,
  dpuExtensionServiceDeployments: "asks for services of a DPU, and Muster manages no DPU",
  machineLabelSelector: "selects machines by labels; name a machine or an instance type",
  powerProfile: "asks for a power profile, which Muster cannot set",
};

/** False if the value of a field in a NICo request asks for nothing, such as an empty list. */
const asks = (value: unknown): boolean =>
  value !== undefined &&
  value !== null &&
  value !== false &&
  value !== "" &&
  !(typeof value === "object" && Object.keys(value).length === 0);

/** Returns the fields of a NICo request that ask for what Muster cannot do, each with the reason. */
export function whatCannotBe(body: unknown): { readonly field: string; readonly reason: string }[] {
  const fields = new Map(Object.entries(typeof body === "object" && body !== null ? body : {}));
  return Object.entries(CANNOT).flatMap(([field, reason]) => (asks(fields.get(field)) ? [{ field, reason }] : []));
}
