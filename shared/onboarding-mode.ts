/**
 * The ways in which a host became a node. `maas` means that Muster deployed the host, `manual` that a person installed the host without MAAS, and
 * `adopted` that the host already ran as a machine that MAAS had deployed.
 */
export const ONBOARDING_MODES = ["maas", "manual", "adopted"] as const;
export type OnboardingMode = (typeof ONBOARDING_MODES)[number];
