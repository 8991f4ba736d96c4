import type { Secret } from "../../shared/secret.ts";
import { createMaasClient } from "./client.ts";
import type { RequestReport, TransportOptions } from "./http.ts";
import { RequestLimiter } from "./limiter.ts";
import type { MaasPort } from "./port.ts";

export interface SiteAddress {
  readonly siteId: string;
  readonly baseUrl: string;
}

/** All MAAS clients of a site share one limit of requests (decision M13). */
export class SiteClients {
  readonly #limiters = new Map<string, RequestLimiter>();
  readonly #onRequest: ((siteId: string, report: RequestReport) => void) | undefined;
  constructor(onRequest?: (siteId: string, report: RequestReport) => void) {
    this.#onRequest = onRequest;
  }

  client(site: SiteAddress, apiKey: Secret, signal?: AbortSignal): MaasPort {
    const limiter = this.#limiters.get(site.siteId) ?? new RequestLimiter();
    this.#limiters.set(site.siteId, limiter);
    const options: TransportOptions = {
      baseUrl: site.baseUrl,
      apiKey,
      limiter,
      ...(signal === undefined ? {} : { signal }),
      onRequest: (report) => this.#onRequest?.(site.siteId, report),
    };
    return createMaasClient(options);
  }
}
