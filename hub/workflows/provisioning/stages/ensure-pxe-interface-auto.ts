import { failure } from "../../../../shared/failures.ts";
import type { MaasInterface, MaasSubnet } from "../../../maas/port.ts";
import type { Failed, Outcome } from "../../engine/stage.ts";
import { maasOf, type ProvisionContext, type ProvisionStage, profileTimeout, systemIdOf } from "../context.ts";
import { notEditable } from "../editable.ts";
import type { ProvisionState } from "../provision-state.ts";

/**
 * MAAS refuses to deploy a machine without a link to a subnet (maas 2.8). The stage `ensure_pxe_interface_auto` links the PXE interface to a subnet
 * before the deploy, or reports why it cannot.
 */
export const ensurePxeInterfaceAuto: ProvisionStage<"ensure_pxe_interface_auto"> = {
  name: "ensure_pxe_interface_auto",
  title: "Make sure that the PXE interface gets an address from MAAS",
  reentry: { rule: "from_top" },
  timeout: profileTimeout("configureTimeoutSeconds", "upstream_transient", "maas_timeout", "Linking the PXE interface"),
  retry: { maxAttempts: 2, baseSeconds: 2, maxSeconds: 30 },
  async run(context) {
    const other = await notEditable("ensure_pxe_interface_auto", context);
    if (other !== null) return other;
    const maas = await maasOf(context);
    const systemId = systemIdOf(context);
    const name = context.profile.nodePxeIface ?? context.site.nodePxeIface;
    const interfaces = await maas.interfaces(systemId);
    const nic = interfaces.find((one) => one.name === name);
    if (nic === undefined) return unwired(context, noInterface(context, name, interfaces));
    const patch = { pxe_interface: name };
    if (nic.links.some(isAutomatic))
      return { kind: "done", message: `${name} has an automatic address already`, patch };
    const subnet = subnetFor(nic, await maas.subnets());
    if (subnet === null) return unwired(context, noSubnet(context, name));
    for (const link of nic.links.filter((one) => one.subnetId !== null))
      await maas.unlinkSubnet(systemId, nic.id, link.id);
    await maas.linkSubnet(systemId, nic.id, { mode: "auto", subnetId: subnet.id });
    return { kind: "done", message: `${name} gets its address automatically from ${subnet.cidr}`, patch };
  },
};

const isAutomatic = (link: MaasInterface["links"][number]): boolean =>
  ["auto", "dhcp"].includes(link.mode) && link.subnetId !== null;

/** Prefers the subnet to which the PXE interface was linked over other subnets of the interface's VLAN. */
function subnetFor(nic: MaasInterface, subnets: readonly MaasSubnet[]): MaasSubnet | null {
  const linked = nic.links.map((link) => link.subnetId);
  return (
    subnets.find((subnet) => linked.includes(subnet.id)) ??
    subnets.find((subnet) => nic.vlanId !== null && subnet.vlanId === nic.vlanId) ??
    null
  );
}

/** Without `strictPxePreflight`, MAAS deploys even a host whose wiring looks wrong (lifecycle 4.6). */
function unwired(context: ProvisionContext, refusal: Failed<ProvisionState>): Outcome<ProvisionState> {
  if (context.profile.strictPxePreflight) return refusal;
  const message = `The profile's PXE preflight is not strict, so the ${context.operation} continues in spite of this: ${refusal.failure.message}`;
  return { kind: "skipped", message, details: refusal.failure.evidence };
}

function noInterface(
  { host }: ProvisionContext,
  name: string,
  interfaces: readonly MaasInterface[],
): Failed<ProvisionState> {
  const message = `${host.hostname} has no interface ${name} in MAAS. Compare the wiring with the site's PXE interface name, then resume.`;
  const evidence = { interface: name, interfaces: interfaces.slice(0, 32).map((one) => one.name) };
  return { kind: "failed", failure: failure("hardware_mismatch", "pxe_interface_missing", message, evidence) };
}

function noSubnet({ host, site, profile }: ProvisionContext, name: string): Failed<ProvisionState> {
  const message = `Interface ${name} of ${host.hostname} lies on a VLAN without a subnet in MAAS. Add the subnet of PXE VLAN ${profile.pxeVlanVid ?? site.pxeVlanVid}, then resume.`;
  return {
    kind: "failed",
    failure: failure("site_capability_missing", "subnet_missing", message, { interface: name }),
  };
}
