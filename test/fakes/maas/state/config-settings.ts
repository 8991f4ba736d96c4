import type { MaasVersion } from "./model.ts";

type Value = string | number | boolean | null;

/** MAAS settings whose value the simulator uses or the hub reads. For any other setting, the simulator answers null. */
export const CONFIG_DEFAULTS: Readonly<Record<string, Value>> = {
  maas_name: "simulated-site",
  default_osystem: "ubuntu",
  default_distro_series: "jammy",
  commissioning_distro_series: "jammy",
  hardware_sync_interval: "15m",
  node_timeout: 30,
  default_storage_layout: "flat",
  default_boot_interface_link_type: "auto",
  enable_disk_erasing_on_release: false,
  disk_erase_with_secure_erase: true,
  disk_erase_with_quick_erase: false,
  enlist_commissioning: true,
  enable_third_party_drivers: true,
  prometheus_enabled: false,
  ntp_servers: "ntp.ubuntu.com",
  upstream_dns: "1.1.1.1 8.8.8.8",
  kernel_opts: null,
};

/** The names of MAAS's settings, in the order of MAAS's error text about an unknown name. */
const NAMES =
  "maas_name theme kernel_opts enable_http_proxy maas_proxy_port use_peer_proxy prefer_v4_proxy http_proxy default_dns_ttl upstream_dns dnssec_validation maas_internal_domain dns_trusted_acl ntp_servers ntp_external_only allow_only_trusted_transfers remote_syslog maas_syslog_port network_discovery active_discovery_interval default_boot_interface_link_type default_osystem default_distro_series default_min_hwe_kernel enable_kernel_crash_dump default_storage_layout commissioning_distro_series enable_third_party_drivers windows_kms_host enable_disk_erasing_on_release disk_erase_with_secure_erase disk_erase_with_quick_erase boot_images_auto_import boot_images_no_proxy curtin_verbose force_v1_network_yaml enable_analytics completed_intro max_node_commissioning_results max_node_testing_results max_node_installation_results max_node_release_results subnet_ip_exhaustion_threshold_count release_notifications use_rack_proxy node_timeout prometheus_enabled prometheus_push_gateway prometheus_push_interval promtail_enabled promtail_port enlist_commissioning maas_auto_ipmi_user maas_auto_ipmi_user_privilege_level maas_auto_ipmi_k_g_bmc_key maas_auto_ipmi_cipher_suite_id maas_auto_ipmi_workaround_flags vcenter_server vcenter_username vcenter_password vcenter_datacenter hardware_sync_interval tls_cert_expiration_notification_enabled tls_cert_expiration_notification_interval session_length auto_vlan_creation";

const SINCE_3_7: readonly string[] = ["default_boot_interface_link_type", "enable_kernel_crash_dump"];

export function settingNames(version: MaasVersion): string[] {
  return NAMES.split(" ").filter((name) => version === "3.7.3" || !SINCE_3_7.includes(name));
}
