import type { BlockList } from "node:net";
import type { SiteProbe } from "../../shared/api/sites.ts";
import type { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { Secret } from "../../shared/secret.ts";
import type { MaasFacts } from "../adoption/judge-machines.ts";
import type { KeptHead } from "../audit/kept-heads.ts";
import type { Console } from "../console/console.ts";
import type { KnownRegion } from "../db/queries/known-region.ts";
import type { MaasSite, MaasSiteProfile } from "../db/schema/index.ts";
import type { Db, InTx } from "../db/tx.ts";
import type { Diagnostics } from "../diagnostics/take.ts";
import type { EventFeed } from "../events/event-feed.ts";
import type { HubAuthority } from "../gateway/hub-authority.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { SecretStore } from "../secrets/port.ts";
import type { StoreState } from "../secrets/store-watch.ts";
import type { SignIn } from "../sign-in/open-sign-in.ts";
import type { Workflow } from "../workflows/engine/workflow.ts";
import type { TokenRates } from "./token-budgets.ts";

/**
 * Checks whether a site's MAAS works with the given MAAS token and fits the given profiles. `ProbeMaas` reports a MAAS error as a failed check and
 * never throws it.
 */
export type ProbeMaas = (about: {
  readonly site: MaasSite;
  readonly token: Secret;
  readonly profiles: readonly MaasSiteProfile[];
}) => Promise<SiteProbe>;

/**
 * Compares the MAAS region at an address with the region that Muster knows. Returns the differences between the MAAS region at the address and the
 * region that Muster knows; an empty list means that both are one region. `CompareRegion` reports a MAAS error as a difference and never throws it.
 */
export type CompareRegion = (about: {
  readonly address: string;
  readonly token: Secret;
  readonly known: KnownRegion;
}) => Promise<readonly string[]>;

/**
 * Asks MAAS, by read requests only, which user the site's token belongs to and which BMC each of the machines has. `ReadMaasFacts` throws an ApiError
 * if MAAS does not answer.
 */
export type ReadMaasFacts = (siteId: SiteId, systemIds: readonly string[]) => Promise<MaasFacts>;

/** The services that the admin API needs, which `hub/main.ts` creates. */
export interface ApiDependencies {
  readonly db: Db;
  readonly inTx: InTx;
  readonly secrets: SecretStore;
  readonly workflows: readonly Workflow[];
  readonly probe: ProbeMaas;
  readonly compareRegion: CompareRegion;
  readonly maasFacts: ReadMaasFacts;
  readonly events: EventFeed;
  readonly signIn: SignIn;
  /** The URL at which a host reaches the hub if a person runs the bootstrap command on the host. */
  readonly agentUrl: string;
  /** `caBundlePem` throws `SecretError` until the secret store has provided the hub's CA. */
  readonly caBundlePem: () => string;
  /** `authority` throws `SecretError` until the secret store has provided the hub's CA and task-signing key. */
  readonly authority: () => HubAuthority;
  readonly log: Log;
  /** The newest entries of the audit chain that the hub has noted in files outside the database. */
  readonly auditHeads: () => Promise<readonly KeptHead[]>;
  readonly secretStore: () => StoreState;
  readonly metrics: Metrics;
  readonly takeDiagnostics: () => Promise<Diagnostics>;
  /** True for the admin token in the hub's state folder. The hub checks the admin token without its database. */
  readonly isAdminToken: (token: string) => Promise<boolean>;
  /** Removes the file with the admin token, after the admin token was retired. */
  readonly forgetAdminToken: () => Promise<void>;
  /** The proxies whose header X-Forwarded-For the hub believes; without such proxies, the source of a request is the address of its socket. */
  readonly proxies?: BlockList | null;
  /** The hours after which the approval of a second person expires, by default a day. */
  readonly approvalHours?: number | undefined;
  /** The request budgets of a token of the admin API, by default those of `hub/gateway/budgets.ts`; tests may set other budgets. */
  readonly tokenRates?: TokenRates | undefined;
  /** The name of the organization in the paths of the routes in NICo's form; without a name the hub does not serve these routes (decision R3). */
  readonly nicoOrg?: string | undefined;
  /** The operators' console; an API without one, as in most tests, has nothing at `/console`. */
  readonly console?: Console;
  readonly status: () => { readonly hub_id: string; readonly version: string; readonly agents: number };
}
