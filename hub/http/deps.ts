import type { SiteProbe } from "../../shared/api/sites.ts";
import type { Log } from "../../shared/log.ts";
import type { Secret } from "../../shared/secret.ts";
import type { KnownRegion } from "../db/queries/known-region.ts";
import type { MaasSite, MaasSiteProfile } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { Diagnostics } from "../diagnostics/take.ts";
import type { EventFeed } from "../events/event-feed.ts";
import type { HubAuthority } from "../gateway/hub-authority.ts";
import type { SecretStore } from "../secrets/port.ts";
import type { StoreState } from "../secrets/store-watch.ts";
import type { Workflow } from "../workflows/engine/workflow.ts";
import type { TokenRates } from "./token-budgets.ts";

/** Checks whether a site's MAAS works with this token and fits the profiles. MAAS errors become failed checks and are never thrown. */
export type ProbeMaas = (about: {
  readonly site: MaasSite;
  readonly token: Secret;
  readonly profiles: readonly MaasSiteProfile[];
}) => Promise<SiteProbe>;

/**
 * Compares the region at an address with the known region. Returns the differences; an empty list means that the address leads to the known region.
 * MAAS errors become differences and are never thrown.
 */
export type CompareRegion = (about: {
  readonly address: string;
  readonly token: Secret;
  readonly known: KnownRegion;
}) => Promise<readonly string[]>;

/** The services that the admin API needs; the hub's main creates them. */
export interface ApiDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly secrets: SecretStore;
  readonly workflows: readonly Workflow[];
  readonly probe: ProbeMaas;
  readonly compareRegion: CompareRegion;
  readonly events: EventFeed;
  /** The URL at which hosts of manual mode, on which a person runs the bootstrap command, reach the hub. */
  readonly agentUrl: string;
  /** Throws `SecretError` while the secret store has not provided the CA. */
  readonly caBundlePem: () => string;
  /** Throws `SecretError` while the secret store has not provided the hub's CA and task-signing key. */
  readonly authority: () => HubAuthority;
  readonly log: Log;
  readonly secretStore: () => StoreState;
  readonly takeDiagnostics: () => Promise<Diagnostics>;
  /** True for the token in the hub's own folder, which the hub recognizes without its database. */
  readonly isAdminToken: (token: string) => Promise<boolean>;
  /** The budgets of a token of the admin API, by default those of `budgets.ts`; tests may set others. */
  readonly tokenRates?: TokenRates | undefined;
  readonly status: () => { readonly hub_id: string; readonly version: string; readonly agents: number };
}
