import type { SiteProbe } from "../../shared/api/sites.ts";
import type { Secret } from "../../shared/secret.ts";
import type { KnownRegion } from "../db/queries/known-region.ts";
import type { MaasSite, MaasSiteProfile } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { Diagnostics } from "../diagnostics/take.ts";
import type { EventFeed } from "../events/event-feed.ts";
import type { HubAuthority } from "../gateway/hub-authority.ts";
import type { Log } from "../log.ts";
import type { SecretStore } from "../secrets/port.ts";
import type { StoreState } from "../secrets/store-watch.ts";
import type { Workflow } from "../workflows/engine/workflow.ts";
import type { TokenRates } from "./token-budgets.ts";

/** Asks a site's MAAS whether it is usable with this token, and fit for the profiles. Never throws for what MAAS says. */
export type ProbeMaas = (about: {
  readonly site: MaasSite;
  readonly token: Secret;
  readonly profiles: readonly MaasSiteProfile[];
}) => Promise<SiteProbe>;

/** What speaks against the region at this address being the known one; empty: it is. Never throws for what MAAS says. */
export type CompareRegion = (about: {
  readonly address: string;
  readonly token: Secret;
  readonly known: KnownRegion;
}) => Promise<readonly string[]>;

/** What the admin API needs; composed in the hub's main. */
export interface ApiDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly secrets: SecretStore;
  readonly workflows: readonly Workflow[];
  readonly probe: ProbeMaas;
  readonly compareRegion: CompareRegion;
  readonly events: EventFeed;
  /** Where hosts of manual mode reach the hub. */
  readonly agentUrl: string;
  /** Throws `SecretError` while the secret store has not given it. */
  readonly caBundlePem: () => string;
  /** Likewise. */
  readonly authority: () => HubAuthority;
  readonly log: Log;
  readonly secretStore: () => StoreState;
  readonly takeDiagnostics: () => Promise<Diagnostics>;
  /** Whether it is the token of the hub's own folder, which the hub knows without its database. */
  readonly isAdminToken: (token: string) => Promise<boolean>;
  /** Those of `budgets.ts`, unless it is a test's. */
  readonly tokenRates?: TokenRates | undefined;
  readonly status: () => { readonly hub_id: string; readonly version: string; readonly agents: number };
}
