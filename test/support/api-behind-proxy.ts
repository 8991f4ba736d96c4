import { openDatabase } from "../../hub/db/client.ts";
import { type ApiHarness, startApi } from "./api-harness.ts";
import { quietLog } from "./log.ts";
import { type PostgresProxy, startPostgresProxy } from "./postgres-proxy.ts";

export async function startApiBehindProxy(): Promise<{
  api: ApiHarness;
  proxy: PostgresProxy;
  close(): Promise<void>;
}> {
  const { promise, resolve } = Promise.withResolvers<PostgresProxy>();
  const api = await startApi({
    open: async (url) => {
      const proxy = await startPostgresProxy(url);
      resolve(proxy);
      return openDatabase({ url: proxy.url, poolSize: 3, applicationName: "away", log: quietLog });
    },
  });
  const proxy = await promise;
  const close = async (): Promise<void> => {
    proxy.decide = () => "pass";
    proxy.silent = false;
    proxy.cutAll();
    await api.close();
    await proxy.close();
  };
  return { api, proxy, close };
}
