import { BmcError, type BmcPort, type OpenBmc } from "../bmc/port.ts";
import { SecretError, type SecretStore } from "../secrets/port.ts";
import type { Traces } from "./export-traces.ts";
import type { OutsideCall } from "./spans.ts";

type To = OutsideCall["to"];

/** Records each call of `work` as a call to another system. */
async function traced<T>(
  traces: Traces,
  { to, operation }: { readonly to: To; readonly operation: string },
  work: () => Promise<T>,
): Promise<T> {
  const startMs = Date.now();
  const end = (failure: string | null): void => traces.called({ to, operation, failure, startMs, endMs: Date.now() });
  try {
    const value = await work();
    end(null);
    return value;
  } catch (error) {
    end(error instanceof SecretError || error instanceof BmcError ? error.code : "error");
    throw error;
  }
}

/** A span names the operation of the secret store, and never the path or the content of a secret. */
export function tracedSecrets(store: SecretStore, traces: Traces): SecretStore {
  const call = <T>(operation: keyof SecretStore, work: () => Promise<T>): Promise<T> =>
    traced(traces, { to: "secret_store", operation }, work);
  return {
    read: (path) => call("read", () => store.read(path)),
    readVersion: (path) => call("readVersion", () => store.readVersion(path)),
    write: (path, data, replaces) => call("write", () => store.write(path, data, replaces)),
    remove: (path) => call("remove", () => store.remove(path)),
    check: () => call("check", () => store.check()),
  };
}

export const tracedBmc =
  (open: OpenBmc, traces: Traces): OpenBmc =>
  (login, signal) => {
    const bmc = open(login, signal);
    const call = <T>(operation: keyof BmcPort, work: () => Promise<T>): Promise<T> =>
      traced(traces, { to: "bmc", operation }, work);
    return {
      power: () => call("power", () => bmc.power()),
      bootFromNetworkOnce: () => call("bootFromNetworkOnce", () => bmc.bootFromNetworkOnce()),
      powerOff: () => call("powerOff", () => bmc.powerOff()),
      powerOn: () => call("powerOn", () => bmc.powerOn()),
    };
  };
