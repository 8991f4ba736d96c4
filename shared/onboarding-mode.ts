/**
 * The ways in which a host became a node. The onboarding mode `maas` means that Muster deployed the host, `manual` that a person installed the host
 * without MAAS, `adopted` that the host already ran as a machine that MAAS had deployed, and `external` that another system provisions the host.
 */
export const ONBOARDING_MODES = ["maas", "manual", "adopted", "external"] as const;
export type OnboardingMode = (typeof ONBOARDING_MODES)[number];

/** Who provisions a host. The field `network_owned_by` says who runs the host's network, independently of who provisions the host. */
export const PROVISIONERS = ["maas", "manual", "external"] as const;
export const PROVISIONED_BY = {
  maas: "maas",
  adopted: "maas",
  manual: "manual",
  external: "external",
} as const satisfies Readonly<Record<OnboardingMode, (typeof PROVISIONERS)[number]>>;
